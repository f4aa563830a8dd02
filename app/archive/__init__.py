"""The archive port and its adapters."""
