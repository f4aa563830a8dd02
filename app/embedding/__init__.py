"""The embedder port and its adapters."""
