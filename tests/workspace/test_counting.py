"""Words of core: a folder counts what the service counts, shields or none."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.layers.core import CoreDocument, Section, core_words, render_core
from app.layers.movements import Layers
from app.layers.sections import body_text
from app.workspace import heartbeat, trim
from app.workspace.folder import open_folder
from app.workspace.reading import read_workspace
from tests.layers.texts import texts
from tests.workspace.tree import ROOT, bare

# With a shield, the run is one character longer than a word may be.
FENCE = "```" + "a" * 27
TEXT = f"## heading one two\n{FENCE}\nopen fence text"
LONG = st.sampled_from([FENCE, f"\\{FENCE}", f"- {FENCE}", f"~~~{'b' * 57}"])
SECTIONS = st.dictionaries(
    st.sampled_from(Section),
    st.lists(texts(max_lines=4) | LONG, max_size=4).map("\n".join),
)


def read(workspace: Path, core: str) -> Layers:
    (workspace / "memory/core.md").write_bytes(core.encode())
    with open_folder(workspace) as folder:
        return read_workspace(folder).layers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("workspace")
    (place / "memory").mkdir()
    return place


@given(SECTIONS)
@example({Section.USER: TEXT})
@example({Section.USER: f"\\{FENCE}"})
@example({Section.USER: FENCE, Section.ACTIVE_CONTEXT: FENCE})
def test_a_folder_counts_what_the_service_counts(folder: Path, said: dict[Section, str]) -> None:
    of_service = {section: body_text(text) for section, text in said.items()}

    assert read(folder, render_core(of_service)).words == core_words(of_service)


@given(texts())
def test_a_file_of_any_form_counts_what_its_texts_count(folder: Path, text: str) -> None:
    document = CoreDocument.read(text)

    assert read(folder, text).words == core_words(document.texts) + document.other_words


def test_words_in_no_section_count_without_shields(folder: Path) -> None:
    core = f"# Core Memory\n\n\\{FENCE}\n\n## Mine\n\n\\{FENCE}\n"

    assert CoreDocument.read(core).other_words == read(folder, core).words == 3


def test_shields_count_nowhere_in_trim_heartbeat_and_the_script(workspace: Path) -> None:
    (workspace / "memory/core.md").write_text(render_core({Section.USER: TEXT}))
    words = core_words({Section.USER: TEXT})
    told = ("Nothing to move.", f"Core has {words} words of at most {words}.")
    script = ROOT / "scripts" / "core-trim.py"
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"

    assert trim(workspace, max_words=words).report == told
    assert heartbeat(workspace, max_words=words).report == told
    done = bare(code, "--workspace", str(workspace), "--max-words", str(words))
    assert done.stdout.splitlines() == list(told)
