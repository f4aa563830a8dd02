"""The archive in production: a Letta 0.16.7, asked and believed only as far as it was measured."""
