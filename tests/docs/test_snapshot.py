"""What docs/snapshot.md does with curl works."""

from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.conftest import StartLive
from tests.docs.shell import Shell, blocks
from tests.support.client import Api
from tests.support.tree import grow_tree

PAGE = ROOT / "docs" / "snapshot.md"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_snapshot_is_taken_and_brought_back_with_curl(
    start_live: StartLive, tmp_path: Path
) -> None:
    service = start_live()
    shell = Shell(tmp_path, service.base_url)
    [commands] = [block.text for block in blocks(PAGE) if block.language == "sh"]
    with Api(service.base_url) as api:
        tree = grow_tree(api, "exp1")
        tree.write("root", "blue door")

        take, bring_back = commands.replace("\\\n", "").splitlines()
        shell.run(take)
        assert api.purge("exp1").is_success
        shell.run(bring_back)

        assert tree.own("root") == ["blue door"]
