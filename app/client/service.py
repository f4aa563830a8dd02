"""The service as its callers see it."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Self

from app.client.connection import (
    LONG_TIMEOUT,
    Advance,
    Answer,
    Connection,
    Refused,
)
from app.client.layers import Layers
from app.client.movements import Movements
from app.client.reading import about, read_as
from app.client.spelling import path_of

# Of a checkpoint with its counts, what its callers read.
COUNTED = {"id", "created_at", "model", "pending", "refused"}


class Service:
    """One service and one credential.

    Reads, and writes that carry an idempotency key, are repeated while the service is away: both
    have the same effect once or twice. A snapshot that is sent is repeated only where no connection
    was made. Every call raises Refused and Unreachable, and BadSegment for what can be no id. To
    make one raises NotConfigured for an address or a key that can be none.
    """

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self._connection = Connection(url, api_key=api_key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    @property
    def _address(self) -> str:
        return self._connection.address

    def layers(self, checkpoint: str) -> Layers:
        """Return the layers of memory of a checkpoint."""
        return Layers(self._connection, checkpoint)

    def movements(self, checkpoint: str) -> Movements:
        """Return what moves between the layers of a checkpoint."""
        return Movements(self._connection, checkpoint)

    def ready(self) -> Answer:
        """Return what /readyz says, good or bad, without asking twice."""
        members = {"status", "ledger", "archive"}
        try:
            return self._connection.send_once("GET", "/readyz", members=members)
        except Refused as refused:
            if not refused.document.keys() >= members:
                raise
            return dict(refused.document)

    def create_checkpoint(
        self, checkpoint: str | None, *, path: str | None = None, name: str | None = None
    ) -> Answer:
        """Return the checkpoint of this id, or of this path, made if it was not there."""
        body = {"id": checkpoint, "path": path, "name": name}
        made = self._connection.send("POST", "/checkpoints", json=body, members={"id"})
        return made if checkpoint is None else about(checkpoint, made, address=self._address)

    def list_checkpoints(self, *, limit: int) -> Answer:
        """Return the first page of checkpoints."""
        params = {"limit": str(limit)}
        return self._connection.send("GET", "/checkpoints", params=params, members={"items"})

    def get_checkpoint(self, checkpoint: str) -> Answer:
        """Return the checkpoint with its counts."""
        return self._connection.send("GET", path_of("checkpoints", checkpoint), members=COUNTED)

    def tree(self, checkpoint: str) -> Answer:
        """Return every node: parents before children, branch after branch."""
        return self._connection.send(
            "GET",
            path_of("checkpoints", checkpoint, "tree"),
            timeout=LONG_TIMEOUT,
            members={"nodes"},
        )

    def create_node(
        self,
        checkpoint: str,
        name: str,
        *,
        parent: str | None = None,
        eval_summary: str | None = None,
    ) -> Answer:
        """Return the node, made if it was not there."""
        body = {"name": name, "parent": parent, "eval_summary": eval_summary}
        made = self._connection.send(
            "POST", path_of("checkpoints", checkpoint, "nodes"), json=body, members={"id"}
        )
        return about(f"{checkpoint}.{name}", made, address=self._address)

    def write_batch(self, node: str, entries: Sequence[Answer], *, key: str) -> list[Answer]:
        """Store entries as the node's executor, once for each key; return them as accepted."""
        answer = self._connection.send(
            "POST",
            path_of("nodes", node, "memory", "batch"),
            json={"entries": list(entries)},
            headers={"X-Current-Node": node, "Idempotency-Key": key},
            members={"items"},
        )
        return read_as(
            lambda said: [item for item, _ in zip(said["items"], entries, strict=True)],
            answer,
            address=self._address,
        )

    def search(
        self, node: str, query: str | None = None, *, limit: int = 5, include_self: bool = False
    ) -> Answer:
        """Search as the node's executor; without a query, by the node's direction."""
        return self._connection.send(
            "POST",
            path_of("nodes", node, "memory", "search"),
            json={"query": query, "limit": limit, "include_self": include_self},
            headers={"X-Current-Node": node},
            members={"results", "scope", "pending"},
        )

    def inherited(self, node: str) -> list[Answer]:
        """Return the entries of the node's lineage, root first, every page of them."""
        items: list[Answer] = []
        params = {"limit": "1000"}
        while True:
            page = self._connection.send(
                "GET",
                path_of("nodes", node, "memory", "inherited"),
                params=params,
                headers={"X-Current-Node": node},
                members={"items", "next_cursor"},
            )
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            params["cursor"] = page["next_cursor"]

    def reindex(self, checkpoint: str) -> Answer:
        """Have every entry indexed anew; return the checkpoint, whose `pending` tells how far."""
        path = path_of("checkpoints", checkpoint, "reindex")
        return self._connection.send("POST", path, members=COUNTED)

    def reconcile(self, checkpoint: str, *, dry_run: bool) -> Answer:
        """Compare ledger and archive, and mend the archive unless it is a dry run."""
        return self._connection.send(
            "POST",
            path_of("checkpoints", checkpoint, "reconcile"),
            params={"dry_run": str(dry_run).lower()},
            timeout=LONG_TIMEOUT,
            members={"checked", "missing", "differing", "orphans", "doubles", "dry_run"},
        )

    def backup(
        self,
        checkpoint: str,
        file: IO[bytes],
        *,
        on_size: Callable[[int | None], None],
        advance: Advance,
    ) -> int:
        """Write the checkpoint's snapshot into a file; return how many bytes it has.

        `on_size` is told once how many will come. Where this raises, the file holds a part.
        """
        path = path_of("checkpoints", checkpoint, "backup")
        return self._connection.download(path, file, on_size=on_size, advance=advance)

    def restore(
        self,
        checkpoint: str,
        file: IO[bytes],
        *,
        on_conflict: str,
        advance: Advance,
    ) -> Answer:
        """Restore the snapshot in a file, all of it or nothing; return the counts."""
        return self._connection.upload(
            path_of("checkpoints", checkpoint, "restore"),
            file,
            advance,
            params={"on_conflict": on_conflict},
            members={"restored", "skipped", "conflicts", "ignored"},
        )

    def resume(self, checkpoint: str, file: IO[bytes], *, advance: Advance) -> Answer:
        """Restore the snapshot where nothing is there, or mend the index; return what was done."""
        path = path_of("checkpoints", checkpoint, "resume")
        return self._connection.upload(path, file, advance, members={"did", "restored"})
