"""A tree of nodes as lines of a terminal, however deep and wide it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from app.cli.output import printable
from app.client import Answer

# Of the branches that lead to a node, the nearest are drawn: a chain may be thousands deep.
MAX_DRAWN = 24
NARROWEST = 4


@dataclass(frozen=True, slots=True)
class Guides:
    """What branches are drawn with, three characters each."""

    through: str
    fork: str
    last: str
    nothing: str
    above: str
    cut: str


LINES = Guides("│  ", "├─ ", "└─ ", "   ", "⋯", "…")
ASCII = Guides("|  ", "|- ", "`- ", "   ", "~", "...")


def drawn(nodes: Sequence[Answer], *, width: int | None, ascii_only: bool) -> Iterator[Text]:
    """Yield a line for each node of a TreeOut, whose order is that of a drawing.

    With a width, no line is longer unless a node's name makes it so.
    """
    guides = ASCII if ascii_only else LINES
    most = MAX_DRAWN if width is None else max(NARROWEST, min(MAX_DRAWN, width // 6))
    last_child = {node["id"]: (node["children"] or [None])[-1] for node in nodes}
    # For each level above the node at hand, whether its branch goes on below.
    goes_on: list[bool] = []
    for node in nodes:
        depth = node["depth"]
        del goes_on[max(0, depth - 1) :]
        if depth:
            goes_on.append(last_child[node["parent"]] != node["id"])
        yield _line(node, _prefix(goes_on, guides, most), width, guides)


def _prefix(goes_on: Sequence[bool], guides: Guides, most: int) -> str:
    if not goes_on:
        return ""
    near = goes_on[-most:]
    hidden = len(goes_on) - len(near)
    return "".join(
        (
            f"{guides.above}{hidden} " if hidden else "",
            *(guides.through if more else guides.nothing for more in near[:-1]),
            guides.fork if near[-1] else guides.last,
        )
    )


def _line(node: Answer, prefix: str, width: int | None, guides: Guides) -> Text:
    count = node["entry_count"]
    line = Text.assemble(
        (prefix, "dim"),
        (node["name"], "bold cyan"),
        (f"  {count} {'entry' if count == 1 else 'entries'}", "green" if count else "dim"),
    )
    if node["sealed"]:
        line.append("  sealed", "yellow")
    if node["eval_summary"]:
        direction = printable(" ".join(node["eval_summary"].split()))
        line.append(f"  {_cut(direction, line, width, guides.cut)}", "dim")
    return line


def _cut(direction: str, line: Text, width: int | None, sign: str) -> str:
    """Return as much of a direction as fits behind the line."""
    if width is None:
        return direction
    room = width - line.cell_len - 2
    text = Text(direction)
    if text.cell_len <= room:
        return direction
    text.truncate(max(0, room - len(sign)))
    return f"{text.plain.rstrip()}{sign}" if room > len(sign) else ""
