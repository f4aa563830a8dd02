"""Snapshots: the portable file `memory_backup.jsonl.gz` of a checkpoint, out and in."""
