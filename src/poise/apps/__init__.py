"""What a user asks for, in a page of code each."""
