"""Workspaces as people make them by hand: thirty days of notes in mixed styles.

Everything that says something carries a mark of its own (`t0042`), by which it is found again
however it was moved.
"""

import datetime as dt
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

TODAY = dt.date(2026, 6, 9)
MARK = re.compile(r"t[0-9]{4}")

STATEMENTS = [
    "We decided to keep the cosine schedule {}",
    "Decision: the batch size is 64 {}",
    "Learned that warmup of {} steps is enough",
    "Lesson: never trust the cache {}",
    "The run {} ended at loss 0.31",
    "TODO look at {} again",
    "学習率を 3e-4 に下げると {} が安定した。",
    "決定: バッチサイズは {} とする",
    "Met @mira about {} https://example.org/a/b?c=d#e",
    "**bold** {} and `code` with | a bar",
    "just {} words",
    "#lr #warmup {} tags",
    "the answer is {}  with two spaces",
]
PIECES: Mapping[str, str] = {
    "bullet": "- {0}",
    "star": "* {0}",
    "number": "1. {0}",
    "task": "- [ ] {0}",
    "nested": "- {0}\n  - {1}\n    - {2}",
    "lazy": "- {0}\ngoes on here {1}",
    "spaced": "- {0}\n\n  and a second paragraph {1}",
    "fenced item": "- {0}\n  ```sh\n  make {1}\n  ```",
    "prose": "{0}\n{1}",
    "code": "```python\nprint('{0}')\n\n# {1}\n```",
    "tilde": "~~~\n## {0}\n- {1}\n~~~",
    "table": "| run | loss |\n| --- | --- |\n| {0} | 0.31 |\n| {1} | 0.29 |",
    "quote": "> {0}\n> {1}",
    "open fence": "```\n{0}",
}
ALL = sorted(PIECES)
CLOSED = [name for name in ALL if name != "open fence"]
SILENT = ["### 午後", "### Later", "---", "<!-- a remark -->", "", "- See archival: projects/old"]
CLOCKS = [
    "",
    "09:15 ",
    "03:04+09:00 ",
    "23:59:59-08:00 ",
    "2026-06-08T09:15:00+09:00 ",
    "**10:30** ",
]


@dataclass(frozen=True)
class Handmade:
    """The files of a workspace by path, and the marks in them by file."""

    files: Mapping[str, bytes]

    def write(self, root: Path) -> None:
        """Make the workspace in a directory."""
        for path, data in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

    def marks(self, beginning: str = "memory") -> set[str]:
        """Return the marks of the files whose path begins so."""
        return {
            mark
            for path, data in self.files.items()
            if path.startswith(beginning)
            for mark in MARK.findall(data.decode(errors="replace"))
        }


@st.composite
def workspaces(draw: st.DrawFn, *, days: int = 30) -> Handmade:
    """Workspaces with a core of any size, notes of ours and of others, and many days."""
    marks = (f"t{number:04d}" for number in itertools.count())
    files: dict[str, bytes] = {}
    if draw(st.booleans()):
        files["memory/core.md"] = _file(draw, _core(draw, marks))
    for at in range(draw(st.integers(0, 4))):
        topic = draw(st.sampled_from(["people", "projects", "learnings", "mine"]))
        files[f"memory/archival/{topic}/{draw(NAMES)}-{at}.md"] = _file(draw, _note(draw, marks))
    for back in range(days):
        if draw(st.booleans()):
            date = TODAY - dt.timedelta(days=back)
            text = draw(st.sampled_from(["", f"# {date}\n\n", f"# {date} (Tuesday)\n", "\ufeff"]))
            files[f"memory/{date}.md"] = _file(draw, text + _said(draw, marks, most=5))
    return Handmade(files)


# Sections of which nothing may be moved.
FIXED = ("Identity", "My Own Section")
NAMES = st.sampled_from(["ada", "Locatering", "学習", "café", "two words", "x.y"])


def _core(draw: st.DrawFn, marks: Iterator[str]) -> str:
    parts = [draw(st.sampled_from(["", "# Core Memory\n\n", "---\nowner: me\n---\n\n"]))]
    titles = draw(
        st.permutations(["Identity", "User", "Active Context", "Quick Reference", "My Own Section"])
    )
    for title in titles[: draw(st.integers(2, 5))]:
        gap = draw(st.sampled_from(["\n", "\n\n", "\n\n\n"]))
        # An open fence would take the sections below into one of which nothing may be moved.
        fixed = title in FIXED
        said = _said(draw, marks, most=1 if fixed else 8, pieces=CLOSED if fixed else ALL)
        parts.append(f"## {title}{gap}{said}{gap}")
    return "".join(parts)


def _note(draw: st.DrawFn, marks: Iterator[str]) -> str:
    said = _said(draw, marks, most=3)
    ours = (
        f"# A title {next(marks)} \u2014 2026-05-02\n\n## Summary\n\nIn short {next(marks)}.\n\n"
        f"## Details\n\n{said}\n\n## Tags\n\na, b\n"
    )
    return draw(st.sampled_from([ours, f"---\nmine: yes\n---\n# Only a title\n\n{said}\n", said]))


def _said(draw: st.DrawFn, marks: Iterator[str], *, most: int, pieces: Sequence[str] = ALL) -> str:
    parts = []
    for _ in range(draw(st.integers(0, most))):
        if draw(st.integers(0, 5)) == 0:
            parts.append(draw(st.sampled_from(SILENT)))
        piece = draw(st.sampled_from(pieces))
        said = [draw(st.sampled_from(STATEMENTS)).format(next(marks)) for _ in range(3)]
        said[0] = draw(st.sampled_from(CLOCKS)) + said[0]
        parts.append(PIECES[piece].format(*said))
        if piece not in {"bullet", "star", "number", "task"} or draw(st.booleans()):
            parts.append("")
    return "\n".join(parts)


def _file(draw: st.DrawFn, text: str) -> bytes:
    """Return a text as one of the editors in use would save it."""
    text = text.rstrip("\n") if draw(st.booleans()) else text.rstrip("\n") + "\n"
    if draw(st.integers(0, 2)) == 0:
        text = text.replace("\n", "\r\n")
    return text.encode()
