"""Two editors of core memory who know nothing of each other: no acknowledged edit is lost."""

from dataclasses import dataclass
from typing import TypeAlias

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Grow
from tests.support.client import Api, answer
from tests.support.examples import SAME

SECTIONS = ("active-context", "quick-reference")
LINES = ("- one", "- two", "three", "## four", "東京")


@dataclass(frozen=True)
class Look:
    """The editor reads a section, and edits what is there from now on."""


@dataclass(frozen=True)
class Put:
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Append:
    """A line of which there has never been one."""


@dataclass(frozen=True)
class Replace:
    """The editor's first line, where there is one, becomes another."""

    line: str


@dataclass(frozen=True)
class PutAll:
    """Core memory as a whole, by somebody who looks at no version."""

    lines: tuple[str, ...]


Act: TypeAlias = Look | Put | Append | Replace | PutAll
some_lines = st.lists(st.sampled_from(LINES), max_size=3, unique=True).map(tuple)
acts = st.one_of(
    st.builds(Look),
    st.builds(Put, some_lines),
    st.builds(Append),
    st.builds(Append),
    st.builds(Replace, st.sampled_from(LINES)),
    st.builds(PutAll, some_lines),
)
steps = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from(SECTIONS), acts), min_size=4, max_size=25
)


class Desk:
    """What each editor has seen of each section, and what it is by what was acknowledged."""

    def __init__(self, api: Api, checkpoint: str) -> None:
        self._api, self._checkpoint = api, checkpoint
        self.texts = dict.fromkeys(SECTIONS, "")
        self._versions = dict.fromkeys(SECTIONS, 0)
        self._seen: dict[tuple[str, str], tuple[str, str, int]] = {}
        self._appended = 0
        for editor in "AB":
            for section in SECTIONS:
                self._look(editor, section)

    def do(self, editor: str, section: str, act: Act) -> None:
        etag, text, version = self._seen[editor, section]
        where = (self._checkpoint, section)
        match act:
            case Look():
                self._look(editor, section)
            case Put(lines):
                wanted = "\n".join(lines)
                put = self._api.put_core_section(*where, wanted, if_match=etag)
                self._judge(put, editor, section, wanted, fresh=version == self._versions[section])
            case Append():
                self._appended += 1
                line = f"- line {self._appended}"
                wanted = f"{text}\n{line}" if text else line
                edit = self._api.edit_core_section(*where, {"append": line}, if_match=etag)
                self._judge(edit, editor, section, wanted, fresh=version == self._versions[section])
            case Replace(line) if text and _first_is_alone(text):
                first, *rest = text.split("\n")
                wanted = "\n".join([line, *rest])
                change = {"replace": first, "with": line}
                edit = self._api.edit_core_section(*where, change, if_match=etag)
                self._judge(edit, editor, section, wanted, fresh=version == self._versions[section])
            case Replace():
                pass
            case PutAll(lines):
                self._keep(section, "\n".join(lines), always=True)
                block = section.replace("-", "_")
                body = {block: self.texts[section]}
                path = f"/checkpoints/{self._checkpoint}/core-memory"
                answer(self._api.request("PUT", path, json=body))

    def _judge(
        self, response: httpx.Response, editor: str, section: str, wanted: str, *, fresh: bool
    ) -> None:
        if not fresh:
            assert response.status_code == 412, response.text
            return
        assert response.status_code == 200, response.text
        self._keep(section, wanted)
        self._seen[editor, section] = (response.headers["ETag"], wanted, self._versions[section])

    def _keep(self, section: str, text: str, *, always: bool = False) -> None:
        if always or text != self.texts[section]:
            self.texts[section] = text
            self._versions[section] += 1

    def _look(self, editor: str, section: str) -> None:
        response = self._api.core_section(self._checkpoint, section)
        assert answer(response)["text"] == self.texts[section]
        self._seen[editor, section] = (
            response.headers["ETag"],
            self.texts[section],
            self._versions[section],
        )


def _first_is_alone(text: str) -> bool:
    first, *rest = text.split("\n")
    return first not in rest


@settings(SAME, max_examples=25)
@given(steps=steps)
def test_a_stale_edit_gets_412_and_no_acknowledged_one_is_lost(
    grow: Grow, api: Api, steps: list[tuple[str, str, Act]]
) -> None:
    tree = grow({"root": {}})
    desk = Desk(api, tree.checkpoint)

    for editor, section, act in steps:
        desk.do(editor, section, act)

    core = answer(api.core_memory(tree.checkpoint))
    assert {section: core[section.replace("-", "_")] for section in SECTIONS} == desk.texts
