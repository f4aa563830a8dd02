"""The use cases. They know the rules, the ledger and the ports, and nothing of HTTP."""
