"""Functions compile wherever Poise is installed."""

from poise.compiled import compiled


def test_a_function_that_cannot_be_cached_is_compiled_all_the_same() -> None:
    found: dict[str, object] = {}
    exec("def twice(x):\n    return 2 * x", found)  # from no file, so there is no place to cache it
    twice = compiled(found["twice"])
    assert twice(21) == 42
    assert twice.signatures
