"""Real servers, a client and a tree factory for the tests; nothing here stands in for a real part."""
