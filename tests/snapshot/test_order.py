"""Entries keep their order: by instant, and within an instant as they stand in the file."""

from tests.conftest import SharedServices
from tests.snapshot.files import entry, foreign, header, node, packed, records, sealed
from tests.snapshot.sample import await_index, own, texts
from tests.support.client import Api, answer, walk
from tests.support.tree import unique_checkpoint

# Unix seconds of 2026-05-02T13:00:00Z.
ONE_O_CLOCK = 1_777_726_800
TIMES = {
    "in Tokyo": "2026-05-02T21:45:00+09:00",
    "in UTC": "2026-05-02T13:00:00Z",
    "a quarter later": "2026-05-02T13:00:00.25Z",
    "finer than is kept": "2026-05-02T13:00:00.2500004Z",
    "without a zone": "2026-05-02T13:00:00",
    "in seconds": ONE_O_CLOCK + 0.125,
}
ORDERED = {
    "in Tokyo": "2026-05-02T12:45:00Z",
    "in UTC": "2026-05-02T13:00:00Z",
    "without a zone": "2026-05-02T13:00:00Z",
    "in seconds": "2026-05-02T13:00:00.125000Z",
    "a quarter later": "2026-05-02T13:00:00.250000Z",
    "finer than is kept": "2026-05-02T13:00:00.250000Z",
}


def test_times_are_ordered_by_instant_and_served_in_utc(api: Api) -> None:
    checkpoint = unique_checkpoint()
    file = packed([foreign(text, ts=ts) for text, ts in TIMES.items()])

    answer(api.restore(checkpoint, file))

    listed = {item["text"]: item["created_at"] for item in own(api, f"{checkpoint}.root")}
    assert list(listed.items()) == list(ORDERED.items())
    paged = walk(lambda cursor: api.entries(f"{checkpoint}.root", cursor=cursor, limit=1))
    assert [item["text"] for item in paged] == list(ORDERED)


def test_the_snapshot_of_such_times_holds_their_instants(api: Api) -> None:
    checkpoint, other = unique_checkpoint(), unique_checkpoint()
    answer(api.restore(checkpoint, packed([foreign(text, ts=ts) for text, ts in TIMES.items()])))

    snapshot = api.backup(checkpoint).content

    lines = [line for line in records(snapshot) if line["kind"] == "node_scope"]
    assert {line["text"]: line["ts"] - ONE_O_CLOCK for line in lines} == {
        "in Tokyo": -900,
        "in UTC": 0,
        "without a zone": 0,
        "in seconds": 0.125,
        "a quarter later": 0.25,
        "finer than is kept": 0.25,
    }
    answer(api.restore(other, snapshot))
    assert texts(api, f"{other}.root") == list(ORDERED)


def test_250_entries_of_one_instant_come_each_once_in_order_page_by_page(api: Api) -> None:
    checkpoint = unique_checkpoint()
    sent = [f"step {(number * 97) % 250}" for number in range(250)]
    file = sealed([header(), node("root"), *(entry(text) for text in sent)])
    answer(api.restore(checkpoint, file))
    root = f"{checkpoint}.root"

    seen: list[str] = []
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        page = answer(api.entries(root, cursor=cursor, limit=10))
        seen += [item["text"] for item in page["items"]]
        cursor = page["next_cursor"]
        pages += 1
        if pages == 3:
            answer(api.write(root, "written meanwhile"))

    assert seen == [*sent, "written meanwhile"]


def test_entries_of_one_instant_rank_alike_after_a_restore(api: Api) -> None:
    """Equal scores are told apart by age, and equal ages by the place in the ledger."""
    checkpoint, other = unique_checkpoint(), unique_checkpoint()
    ids = [f"{(number * 7) % 20:02}" for number in range(20)]
    twins = [entry("blue door", id=f"twin-{number}") for number in ids]
    answer(api.restore(checkpoint, sealed([header(), node("root"), *twins])))
    answer(api.restore(other, api.backup(checkpoint).content))

    for name in (checkpoint, other):
        await_index(api, name)
        found = answer(api.search(f"{name}.root", "door", include_self=True, limit=20))
        assert [hit["entry_id"] for hit in found["results"]] == [f"twin-{n}" for n in ids]


def test_an_entry_of_the_future_does_not_push_what_is_written_now(api: Api) -> None:
    checkpoint = unique_checkpoint()
    future = entry("to come", ts="2200-01-01T00:00:00Z")
    answer(api.restore(checkpoint, sealed([header(), node("root"), future])))

    now = answer(api.write(f"{checkpoint}.root", "now"))

    assert now["created_at"] < "2100"
    assert texts(api, f"{checkpoint}.root") == ["now", "to come"]


def test_the_order_of_lines_does_not_matter(api: Api) -> None:
    checkpoint = unique_checkpoint()
    upside_down = [entry("low", "leaf"), node("leaf", "top"), entry("high", "top"), node("top")]

    answer(api.restore(checkpoint, sealed([header(), *upside_down])))

    found = answer(api.get_node(f"{checkpoint}.leaf"))
    assert found["lineage"] == [f"{checkpoint}.top"]
    assert texts(api, f"{checkpoint}.leaf") == ["low"]


def test_a_deep_tree_is_restored_at_once(sqlite_services: SharedServices) -> None:
    names = [f"n{number}" for number in range(3_000)]
    lines = [node(name, parent) for name, parent in zip(names[1:], names, strict=False)]
    checkpoint = unique_checkpoint()
    with Api(sqlite_services.get().base_url) as api:
        file = sealed([header(), *reversed(lines), node("n0")])

        assert answer(api.restore(checkpoint, file))["restored"]["nodes"] == 3_000

        assert answer(api.get_node(f"{checkpoint}.n2999"))["depth"] == 2_999
