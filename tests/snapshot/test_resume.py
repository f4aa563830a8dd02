"""A resume restores where nothing is there, indexes anew what Letta lost, else does nothing."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import StartService
from tests.snapshot.files import entry, header, node, sealed
from tests.snapshot.sample import await_index, fill, portrait, texts
from tests.support.client import Api, answer
from tests.support.letta import RealLetta
from tests.support.tree import Tree, unique_checkpoint

FILE = sealed([header("elsewhere"), node("root"), entry("blue door")])
NOTHING = {"did": "nothing", "restored": None}


@pytest.mark.parametrize("made", [True, False], ids=["empty", "unknown"])
def test_an_empty_checkpoint_is_restored(api: Api, made: bool) -> None:  # noqa: FBT001
    checkpoint = unique_checkpoint()
    if made:
        answer(api.checkpoint(checkpoint))

    done = answer(api.resume(checkpoint, FILE))

    assert done["did"] == "restored"
    assert done["restored"]["restored"] == {"nodes": 1, "entries": 1, "blocks": 0}
    await_index(api, checkpoint)
    hits = answer(api.search(f"{checkpoint}.root", "door", include_self=True))["results"]
    assert [hit["text"] for hit in hits] == ["blue door"]


def test_a_checkpoint_that_holds_anything_is_left_alone(tree: Tree) -> None:
    assert answer(tree.api.resume(tree.checkpoint, FILE)) == NOTHING
    assert tree.own("root") == []


def test_the_second_resume_does_nothing(api: Api) -> None:
    checkpoint = unique_checkpoint()
    answer(api.resume(checkpoint, FILE))

    assert answer(api.resume(checkpoint, FILE)) == NOTHING
    assert texts(api, f"{checkpoint}.root") == ["blue door"]


def test_without_a_file_there_is_nothing_to_do(api: Api) -> None:
    checkpoint = unique_checkpoint()

    assert answer(api.resume(checkpoint)) == NOTHING
    assert api.get_checkpoint(checkpoint).status_code == 404


def test_a_bad_file_is_refused_where_it_would_be_restored(api: Api) -> None:
    checkpoint = unique_checkpoint()

    assert api.resume(checkpoint, FILE[:-20]).status_code == 422
    assert api.get_checkpoint(checkpoint).status_code == 404


def test_without_a_file_the_services_own_snapshot_is_taken(
    start_service: StartService, tmp_path: Path
) -> None:
    with Api(start_service(snapshot_dir=tmp_path).base_url) as old:
        fill(old, "exp1")
        answer(old.keep_snapshot("exp1"))
        before = portrait(old, "exp1")

    with Api(start_service(snapshot_dir=tmp_path).base_url) as fresh:
        assert answer(fresh.resume("exp1"))["did"] == "restored"
        assert portrait(fresh, "exp1") == before


def test_an_own_snapshot_that_cannot_be_read_is_told(
    start_service: StartService, tmp_path: Path
) -> None:
    (tmp_path / "exp1" / "memory_backup.jsonl.gz").mkdir(parents=True)
    with Api(start_service(snapshot_dir=tmp_path).base_url) as api:
        refused = api.resume("exp1")

    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/snapshot-failed")
    assert "cannot be read" in refused.json()["detail"]


@pytest.mark.letta
def test_what_a_wiped_letta_has_lost_is_indexed_anew(
    start_service: StartService,
    letta: RealLetta,
    letta_instance: str,
    letta_embeddings: str,
) -> None:
    settings: dict[str, Any] = letta.settings(letta_instance)
    service = start_service(**settings, embeddings_url=letta_embeddings)
    checkpoint = unique_checkpoint()
    with Api(service.base_url) as api:
        answer(api.resume(checkpoint, FILE))
        await_index(api, checkpoint)
        assert answer(api.resume(checkpoint)) == NOTHING

        letta.wipe(letta_instance)
        assert answer(api.resume(checkpoint)) == {"did": "reindexed", "restored": None}

        await_index(api, checkpoint)
        hits: httpx.Response = api.search(f"{checkpoint}.root", "door", include_self=True)
        assert [hit["text"] for hit in answer(hits)["results"]] == ["blue door"]
