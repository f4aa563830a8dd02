"""The test suite; `tests.support` holds the real servers it runs against."""
