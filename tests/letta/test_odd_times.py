"""Entries of any time that a restore may bring."""

import pytest

from tests.letta.seen import settled, texts
from tests.snapshot.files import foreign, packed
from tests.support.client import Api, answer
from tests.support.letta import RealLetta
from tests.support.tree import unique_checkpoint

pytestmark = [pytest.mark.letta, pytest.mark.parametrize("archive", ["letta"], indirect=True)]


@pytest.mark.parametrize(
    "ts", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"], ids=["first", "last"]
)
def test_an_entry_at_an_end_of_the_calendar_is_found_and_holds_up_no_other(
    api: Api, letta: RealLetta, ts: str
) -> None:
    checkpoint = unique_checkpoint()
    good = [foreign(f"good number {number}", ts=1_700_000_000 + number) for number in range(5)]
    answer(api.restore(checkpoint, packed([foreign("at the end", ts=ts), *good])))

    shown = settled(api, checkpoint)

    assert shown["refused"] == 0
    found = answer(api.search(f"{checkpoint}.root", "at the end", include_self=True, limit=10))
    assert len(found["results"]) == 6
    assert found["results"][0]["text"] == "at the end"
    assert len(texts(letta, checkpoint)) == 6
    mended = answer(api.request("POST", f"/checkpoints/{checkpoint}/reconcile"))
    assert (mended["missing"], mended["orphans"], mended["doubles"]) == ([], [], [])
