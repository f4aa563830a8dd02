"""Waiting for the index, which follows the ledger by itself."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from app.cli.output import bar, note
from app.client import Answer, Service

POLL_S = 0.5
# So long without an entry less, somebody should look.
STUCK_S = 30.0


def wait_for_index(service: Service, checkpoint: str, *, quiet: bool) -> Answer:
    """Return the checkpoint once nothing of it is pending.

    Ctrl-C ends the waiting and not the indexing. Raises Refused and Unreachable.
    """
    state = service.get_checkpoint(checkpoint)
    moved = time.monotonic()
    with (
        _interruptible(checkpoint),
        bar(f"Indexing {checkpoint}", total=state["pending"], quiet=quiet) as progress,
    ):
        while (left := state["pending"]) > 0:
            time.sleep(POLL_S)
            state = service.get_checkpoint(checkpoint)
            if state["pending"] < left:
                moved = time.monotonic()
                progress.advance(left - state["pending"])
            elif time.monotonic() - moved > STUCK_S:
                moved = time.monotonic()
                note(f"{checkpoint}: {left} entries still wait. {_reason(service)}")
    return state


@contextmanager
def _interruptible(checkpoint: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        note(f"The service goes on indexing {checkpoint}.")
        raise


def refused_ones(state: Answer) -> str:
    """Return a sentence about entries that the archive will not have, if there are any."""
    if not state["refused"]:
        return ""
    return f" The archive will not have {state['refused']}: see GET /checkpoints/{state['id']}."


def _reason(service: Service) -> str:
    ready = service.ready()
    reason = ready.get("ledger") or ready.get("archive")
    return f"{reason}." if reason else "The service is busy."
