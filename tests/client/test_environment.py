"""Where a worker stands: by arguments, by its environment, and in words where neither says."""

from pathlib import Path

import pytest

from app.client import (
    CowViolation,
    LineageMemory,
    NotConfigured,
    NotTheService,
    Problem,
    StaleToken,
    Unauthenticated,
)
from app.client.environment import (
    CHECKPOINT_ID,
    TOKEN_PREFIX,
    CheckpointPath,
    WorkerSettings,
    checkpoint_path,
)
from app.lineage import ids
from app.memory import nodes
from tests.client.conftest import NewWorker
from tests.conftest import API_KEY
from tests.support.client import Api, answer
from tests.support.service import InProcessService
from tests.support.tree import Tree, grow_tree, unique_checkpoint


@pytest.fixture
def directory() -> str:
    """A checkpoint directory that no other test uses; the service never looks into it."""
    return f"/runs/{unique_checkpoint()}"


def grow_at(api: Api, directory: str, *, checkpoint: str | None = None) -> Tree:
    """Grow the example tree in the checkpoint of a directory."""
    made = answer(api.checkpoint(checkpoint, path=directory))
    tree = Tree(api, made["id"])
    tree.add("root")
    tree.add("a", "root")
    return tree


def test_the_environment_says_which_service_checkpoint_and_node(
    new_worker: NewWorker,
    service: InProcessService,
    api: Api,
    directory: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = grow_at(api, directory)
    monkeypatch.setenv("LINEAGE_URL", f"{service.base_url}/")
    monkeypatch.setenv("ARI_CHECKPOINT_DIR", f"{directory}/")
    monkeypatch.setenv("ARI_CURRENT_NODE_ID", "root")
    worker = new_worker()

    worker.add_memory("on the root")
    monkeypatch.setenv("ARI_CURRENT_NODE_ID", tree["a"])  # the loop goes on to the next node
    worker.add_memory("below")

    assert (tree.own("root"), tree.own("a")) == (["on the root"], ["below"])


def test_arguments_outrank_the_environment(
    new_worker: NewWorker, service: InProcessService, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ARI_CHECKPOINT_DIR", "/elsewhere")
    monkeypatch.setenv("ARI_CURRENT_NODE_ID", "b")

    worker = new_worker(service.base_url, checkpoint=tree.checkpoint, current_node="a")

    assert worker.add_memory("text").node == tree["a"]


def test_a_current_node_with_its_whole_id_says_the_checkpoint_too(
    new_worker: NewWorker, service: InProcessService, tree: Tree
) -> None:
    assert new_worker(service.base_url, current_node=tree["a"]).add_memory("x").node == tree["a"]


def test_a_checkpoint_is_made_from_its_directory_where_it_is_new(
    new_worker: NewWorker, service: InProcessService, directory: str
) -> None:
    worker = new_worker(service.base_url, checkpoint=Path(directory), current_node="root")

    assert worker.create_node("root").id == f"{CheckpointPath(directory).derived_id}.root"
    assert worker.get_experiment_context() == {}


def test_a_checkpoint_whose_id_was_chosen_is_found_by_its_directory(
    new_worker: NewWorker, service: InProcessService, api: Api, directory: str
) -> None:
    tree = grow_at(api, directory, checkpoint=unique_checkpoint("chosen"))
    worker = new_worker(service.base_url, checkpoint=directory, current_node="a")

    assert worker.add_memory("text").node == tree["a"]


# What is missing is told in a sentence


def test_a_service_that_nobody_names_is_asked_for(new_worker: NewWorker) -> None:
    with pytest.raises(NotConfigured, match="LINEAGE_URL is not set: it names the service"):
        new_worker(checkpoint="exp1", current_node="a").add_memory("text")


def test_an_address_that_is_none_is_told(new_worker: NewWorker) -> None:
    with pytest.raises(NotConfigured, match="LINEAGE_URL is 'localhost:8000'"):
        new_worker("localhost:8000", checkpoint="exp1", current_node="a").add_memory("text")


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://127.0.0.1:port", "https:///x"])
def test_an_address_that_leads_nowhere_is_told_at_once(url: str, new_worker: NewWorker) -> None:
    worker = new_worker(url, checkpoint="exp1", current_node="a")

    with pytest.raises(NotTheService, match="is not a URL"):
        worker.add_memory("text")


@pytest.mark.parametrize("key", ["kéy", "a key", "key\n"])
def test_a_key_that_can_be_none_is_told_and_not_shown(key: str, new_worker: NewWorker) -> None:
    worker = new_worker("http://127.0.0.1:9", api_key=key, checkpoint="exp1", current_node="a")

    with pytest.raises(NotConfigured, match="LINEAGE_API_KEY holds") as told:
        worker.add_memory("text")

    assert key not in str(told.value)


def test_a_checkpoint_that_nobody_names_is_asked_for(new_worker: NewWorker) -> None:
    with pytest.raises(NotConfigured, match="ARI_CHECKPOINT_DIR is not set"):
        new_worker("http://127.0.0.1:9", current_node="a").add_memory("text")


@pytest.mark.parametrize("call", ["node", "trace"])
def test_a_node_that_nobody_names_is_asked_for(
    call: str, new_worker: NewWorker, service: InProcessService, tree: Tree
) -> None:
    worker = new_worker(service.base_url, checkpoint=tree.checkpoint)

    assert worker.get_experiment_context() == {}  # needs none
    with pytest.raises(NotConfigured, match="ARI_CURRENT_NODE_ID is not set"):
        # Even where the call names a node: without a claim, a key would read everything.
        list(worker.get_node_memory("a") if call == "node" else worker.get_trace())


@pytest.mark.parametrize("node", ["a b", "ä", "a\nX-Evil: 1", "a/../b"])
def test_a_current_node_that_can_be_none_is_told(node: str, new_worker: NewWorker) -> None:
    worker = new_worker("http://127.0.0.1:9", checkpoint="exp1", current_node=node)

    with pytest.raises(NotConfigured, match="ARI_CURRENT_NODE_ID is "):
        worker.add_memory("text")


@pytest.mark.parametrize(
    "node", ["a/memory/search", "a?x=1", "../checkpoints", "ä b#", "%2e%2e", ""]
)
def test_a_node_id_stays_one_part_of_the_path(
    node: str, new_worker: NewWorker, service: InProcessService, tree: Tree
) -> None:
    worker = new_worker(service.base_url, checkpoint=tree.checkpoint, current_node="a")

    with pytest.raises(Problem) as refused:
        worker.add_memory("text", node_id=node)

    assert refused.value.status in {403, 404}


# Credentials


def test_a_node_token_is_enough_for_a_worker(
    new_worker: NewWorker,
    keyed_service: InProcessService,
    keyed_api: Api,
    directory: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = grow_at(keyed_api, directory)
    tree.write("root", "a blue door")
    monkeypatch.setenv("LINEAGE_API_KEY", answer(keyed_api.token(tree["a"]))["token"])
    monkeypatch.setenv("ARI_CHECKPOINT_DIR", directory)
    worker = new_worker(keyed_service.base_url, current_node="a")

    assert worker.add_memory("text").node == tree["a"]
    assert [hit.text for hit in worker.search_memory("door").results] == ["a blue door"]
    assert worker.get_working_context().node == tree["a"]
    assert worker.add_trace_step("step").node == tree["a"]
    assert worker.get_experiment_context() == {}
    assert worker.clear_node_memory() == 1
    with pytest.raises(CowViolation):
        worker.add_memory("text", node_id="root")

    keyed_api.token(tree["a"])
    with pytest.raises(StaleToken):
        worker.add_memory("from a worker that was overtaken")


def test_an_api_key_is_sent_and_a_missing_one_is_told(
    new_worker: NewWorker, keyed_service: InProcessService, keyed_api: Api
) -> None:
    tree = grow_tree(keyed_api, unique_checkpoint())
    given = {"checkpoint": tree.checkpoint, "current_node": "a"}

    worker = new_worker(keyed_service.base_url, api_key=API_KEY, **given)

    assert worker.add_memory("text").node == tree["a"]
    with pytest.raises(Unauthenticated, match="asks for a credential"):
        new_worker(keyed_service.base_url, **given).add_memory("text")


def test_no_key_is_shown_where_settings_are_printed() -> None:
    settings = WorkerSettings("http://127.0.0.1:9", "secret-key")

    assert "secret-key" not in f"{settings} {settings.address()}"


# The client knows the service by its HTTP alone; what it repeats of its rules is held equal here


@pytest.mark.parametrize("path", ["/runs/one", "/runs/one/", "/", "/ä/b c", "/a/../b//"])
def test_an_id_is_derived_from_a_path_as_the_service_does(path: str, api: Api) -> None:
    derived = checkpoint_path(path).derived_id

    assert derived == ids.checkpoint_id(None, ids.checkpoint_path(path))
    assert derived == answer(api.checkpoint(path=path))["id"]


def test_a_relative_directory_begins_where_the_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert checkpoint_path("run/").path == f"{tmp_path}/run"


def test_the_forms_of_checkpoint_ids_and_tokens_are_the_services() -> None:
    assert CHECKPOINT_ID.pattern == ids.CHECKPOINT_ID.pattern
    assert TOKEN_PREFIX == nodes.TOKEN_PREFIX


def test_nothing_is_sent_before_the_first_call() -> None:
    with LineageMemory() as memory, pytest.raises(NotConfigured):
        memory.get_experiment_context()
