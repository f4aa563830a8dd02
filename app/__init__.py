"""letta-lineage: memory for tree-searching research agents that no sibling branch can reach."""
