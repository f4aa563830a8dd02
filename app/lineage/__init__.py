"""The rules of the service, pure: ids, lineage, scope, the guard, texts and JSON values."""
