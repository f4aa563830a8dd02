"""What the documents point to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)")
# Paths as docs/architecture.md writes them, from the root or from `app`.
PATH = re.compile(r"`([a-z_]+/[\w/.]+)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_every_link_to_a_file_leads_somewhere(document: Path) -> None:
    links = LINK.findall(document.read_text(encoding="utf-8"))

    lost = [link for link in links if "://" not in link and not (document.parent / link).exists()]

    assert lost == []


def test_every_path_that_the_architecture_names_exists() -> None:
    named = PATH.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(named) > 20

    lost = [
        path for path in named if not (ROOT / path).exists() and not (ROOT / "app" / path).exists()
    ]

    assert lost == []


def test_every_part_of_the_app_is_in_the_architecture() -> None:
    drawn = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = [part.name for part in (ROOT / "app").iterdir() if (part / "__init__.py").exists()]

    assert [part for part in parts if f"  {part}/" not in drawn] == []
