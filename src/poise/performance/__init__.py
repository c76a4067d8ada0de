"""Performance animation: a few markers, sensors or cameras drive a whole body, live (Chai and Hodgins 2005)."""
