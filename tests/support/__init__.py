"""Real servers, a client and a tree factory; nothing here stands in for a real part."""
