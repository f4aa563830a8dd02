"""A tree as a Mermaid flowchart."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.lineage.guard import Node

MAX_SUMMARY = 60


@dataclass(frozen=True, slots=True)
class Branch:
    """A node in its tree, with how many entries it holds and its children's names."""

    node: Node
    entry_count: int
    children: tuple[str, ...]


def flowchart(branches: Sequence[Branch]) -> str:
    """Return the flowchart's source; sealed nodes are drawn with a dashed border."""
    place = {branch.node.id.name: f"n{number}" for number, branch in enumerate(branches)}
    lines = ["flowchart TD"]
    for branch in branches:
        sealed = ":::sealed" if branch.node.sealed_at else ""
        lines.append(f'    {place[branch.node.id.name]}["{_label(branch)}"]{sealed}')
    lines += [
        f"    {place[branch.node.id.name]} --> {place[child]}"
        for branch in branches
        for child in branch.children
    ]
    lines.append("    classDef sealed stroke-dasharray: 4 3")
    return "\n".join(lines) + "\n"


def _label(branch: Branch) -> str:
    count = branch.entry_count
    parts = [_escaped(branch.node.id.name), f"{count} {'entry' if count == 1 else 'entries'}"]
    if summary := branch.node.eval_summary:
        parts.append(_escaped(_shortened(" ".join(summary.split()))))
    return "<br/>".join(parts)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY else f"{text[: MAX_SUMMARY - 1]}…"


def _escaped(text: str) -> str:
    """Write whatever Mermaid or HTML could read as syntax as a numbered entity."""
    return "".join(
        character if character.isalnum() or character in " ._-…" else f"#{ord(character)};"
        for character in text
    )
