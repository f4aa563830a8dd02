"""What a movement would change, as a unified diff of the files that the layers are on disk."""

import difflib
from collections.abc import Iterator

from app.layers.core import Section, render_core
from app.layers.markdown.lines import lines_of
from app.layers.movements import Layers
from app.layers.sections import section_text

CORE_PATH = "memory/core.md"
# As diff and patch mark a last line that has no end.
NO_END = "\n\\ No newline at end of file\n"
NOWHERE = "/dev/null"


def diff_of(before: Layers, after: Layers) -> str:
    """Return the difference between two states; empty where there is none."""
    parts = [unified(CORE_PATH, _core(before), _core(after))]
    texts = {note.ref: note.text for note in before.notes}
    now = {note.ref: note.text for note in after.notes}
    parts += [
        unified(path_of(ref), texts.get(ref), now.get(ref)) for ref in dict.fromkeys((*texts, *now))
    ]
    return "".join(parts)


def path_of(ref: str) -> str:
    """Return where a note is on disk, within a workspace."""
    return f"memory/archival/{ref}.md"


def unified(path: str, before: str | None, after: str | None) -> str:
    """Return how a file changes as a unified diff; None stands for a file that is not there."""
    if before == after:
        return ""
    lines = difflib.unified_diff(
        lines_of(before or ""),
        lines_of(after or ""),
        NOWHERE if before is None else f"a/{path}",
        NOWHERE if after is None else f"b/{path}",
    )
    return "".join(_whole(lines))


def _whole(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else line + NO_END


def _core(layers: Layers) -> str:
    return render_core({section: section_text(layers.core[section]) for section in Section})
