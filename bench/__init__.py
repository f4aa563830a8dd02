"""The benchmark: `python -m bench`, against the real service over HTTP. See docs/benchmarks.md."""
