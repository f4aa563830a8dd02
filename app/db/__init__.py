"""The ledger in SQL: tables, queries, the writer thread and the cache of hot rows."""
