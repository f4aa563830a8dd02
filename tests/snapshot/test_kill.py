"""kill -9 in the middle of a restore: afterwards everything is there, or nothing."""

import threading
import time

import httpx
import pytest

from tests.conftest import StartLive
from tests.snapshot.files import entry, header, node, sealed
from tests.snapshot.sample import await_index, own
from tests.support.client import Api, answer
from tests.support.tree import unique_checkpoint

ENTRIES = 1_500


@pytest.fixture(scope="module")
def large() -> bytes:
    """A snapshot that takes the service a good part of a second."""
    nodes = [node("root"), *(node(f"n{number}", "root") for number in range(50))]
    entries = [entry(f"step {n} of many", f"n{n % 50}", ts=float(n)) for n in range(ENTRIES)]
    return sealed([header(), *nodes, *entries])


def send(base_url: str, checkpoint: str, snapshot: bytes, mode: str, answers: list[int]) -> None:
    with Api(base_url) as api:
        try:
            answers.append(api.restore(checkpoint, snapshot, on_conflict=mode).status_code)
        except httpx.TransportError:  # killed before it answered
            return


def count(api: Api, checkpoint: str) -> int | None:
    """Return how many entries a checkpoint holds, None where there is none."""
    found = api.get_checkpoint(checkpoint)
    return None if found.status_code == 404 else int(answer(found)["entries"])


@pytest.mark.parametrize("mode", ["skip", "overwrite"])
@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.timeout(600)
def test_a_killed_restore_leaves_nothing_or_everything(
    start_live: StartLive, large: bytes, mode: str, kills: int
) -> None:
    live = start_live()
    former = sealed([header(), node("root"), entry("what was there")])
    outcomes: set[int | None] = set()
    with Api(live.base_url) as api:
        started = time.monotonic()
        answer(api.restore(unique_checkpoint(), large))
        takes_s = time.monotonic() - started

        for kill in range(kills):
            checkpoint = unique_checkpoint()
            if mode == "overwrite":
                answer(api.restore(checkpoint, former))
            answers: list[int] = []
            sending = threading.Thread(
                target=send, args=(live.base_url, checkpoint, large, mode, answers)
            )
            sending.start()
            # From its beginning to a little behind its end.
            time.sleep(takes_s * 1.2 * (kill + 0.5) / kills)
            live.kill()
            sending.join()
            live.start()

            found = count(api, checkpoint)
            outcomes.add(found)
            nothing = 1 if mode == "overwrite" else None
            assert found in {nothing, ENTRIES}
            if answers:
                assert (answers, found) == ([200], ENTRIES)
        again = answer(api.restore(checkpoint, large, on_conflict="overwrite"))
        assert again["restored"] == {"nodes": 51, "entries": ENTRIES, "blocks": 0}
        await_index(api, checkpoint)
        assert len(own(api, f"{checkpoint}.n7")) == ENTRIES // 50
        assert None in outcomes or 1 in outcomes
        assert list((live.storage.data_dir / "scratch").iterdir()) == []
