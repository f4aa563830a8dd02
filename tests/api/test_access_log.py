"""The access log tells who read and wrote what, refusals too."""

from sqlalchemy import create_engine, text

from tests.conftest import StartService
from tests.support.client import Api, Json, walk
from tests.support.tree import Tree, grow_tree, unique_checkpoint


def records(api: Api, checkpoint: str) -> list[Json]:
    return list(walk(lambda cursor: api.access_log(checkpoint, cursor=cursor, limit=3)))


def test_each_access_has_one_record_with_reader_query_hits_and_their_sources(
    tree: Tree, api: Api
) -> None:
    [entry] = tree.write("root", "the blue door")
    reader = tree["a1"]
    api.inherited(reader, claim=reader)
    api.search(reader, "door", claim=reader)
    api.search_by_get(reader, "blue", claim=reader)
    api.entries(tree["root"], claim=reader)
    api.search(reader, "nothing", ancestor_ids=[], claim=reader)
    assert api.write(tree["a2"], "mine", claim=reader).status_code == 403
    assert api.entries(tree["b"], claim=reader).status_code == 403

    log = records(api, tree.checkpoint)

    touched = [{"id": entry["id"], "node": tree["root"]}]
    said = [
        (item["operation"], item["reader"], item["node"], item["query"], item["entries"])
        for item in log
    ]
    assert said == [
        ("read", reader, tree["b"], None, []),
        ("write", reader, tree["a2"], None, []),
        ("search", reader, reader, "nothing", []),
        ("read", reader, tree["root"], None, touched),
        ("search", reader, reader, "blue", touched),
        ("search", reader, reader, "door", touched),
        ("inherited", reader, reader, None, touched),
        ("write", tree["root"], tree["root"], None, touched),
    ]
    assert [item["refusal"] for item in log[:3]] == ["scope-violation", "cow-violation", None]


def test_records_are_newest_first_and_page_without_gap_or_double(tree: Tree, api: Api) -> None:
    for number in range(10):
        api.search(tree["a"], f"query {number}")

    queries = [item["query"] for item in records(api, tree.checkpoint)]

    assert queries == [f"query {number}" for number in reversed(range(10))]


def test_an_operator_is_a_reader_without_a_name(tree: Tree, api: Api) -> None:
    api.search(tree["a"], "door")

    [record] = records(api, tree.checkpoint)

    assert (record["reader"], record["node"]) == (None, tree["a"])


def test_a_purged_checkpoints_log_is_not_its_successors(tree: Tree, api: Api) -> None:
    api.search(tree["a"], "door")
    assert api.purge(tree.checkpoint).status_code == 204
    grow_tree(api, tree.checkpoint)

    assert records(api, tree.checkpoint) == []


def test_a_log_that_cannot_be_written_fails_neither_reads_nor_writes_and_is_counted(
    start_service: StartService,
) -> None:
    service = start_service()
    with Api(service.base_url) as api:
        tree = grow_tree(api, unique_checkpoint())
        engine = create_engine(service.app.state.services.ledger.url)
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE access_log RENAME TO access_log_away"))

        tree.write("root", "the blue door")
        assert tree.search("a", "door") == ["the blue door"]
        assert api.write(tree["a"], "x", claim=tree["b"]).status_code == 403
        assert api.access_log(tree.checkpoint).status_code == 503

        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE access_log_away RENAME TO access_log"))
        engine.dispose()
        assert records(api, tree.checkpoint) == []
        [lost] = [
            line
            for line in api.metrics().text.splitlines()
            if line.startswith("lineage_access_records_lost_total")
        ]
        assert float(lost.split()[1]) == 3
