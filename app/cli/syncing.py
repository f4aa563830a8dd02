"""A folder and a checkpoint, compared and brought up to each other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from app.cli.core_check import refuse_credentials
from app.cli.remote import Remote, read_remote, send
from app.client import Refused, Service
from app.workspace import pulling
from app.workspace.outcome import Outcome
from app.workspace.paths import CORE
from app.workspace.pulling import Local, read_local, remember
from app.workspace.syncing import Comparison, Difference, Way, compare

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Left:
    """What nobody settled, what the service refused and why, and what was left alone."""

    conflicts: Comparison
    unsent: Comparison
    refused: Mapping[str, Refused]
    skipped: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was sent (or, in a dry run, would be), and what is left.

    `renamed` has the ref of each note that the checkpoint holds by another one than the folder.
    """

    sent: Comparison
    left: Left
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pulled:
    """What was taken, what changed in the folder for it (or would), and what is left."""

    taken: Comparison
    outcome: Outcome
    left: Left


def differences(root: Path, service: Service, checkpoint: str) -> tuple[Comparison, Left]:
    """Compare, and change nothing; what no pull could bring is left, and no difference.

    Raises Refused, Unreachable, WorkspaceError.
    """
    remote, local, comparison = _compared(root, service, checkpoint, settle=None)
    tried = pulling.pull(root, local, comparison, dry_run=True)
    left = _left(comparison, remote, local, skipped=tried.outcome.skipped)
    return comparison.without(tried.skipped), left


def push(
    root: Path, service: Service, checkpoint: str, *, overwrite: bool, dry_run: bool
) -> Pushed:
    """Bring a checkpoint up to a folder; with `overwrite`, the folder settles conflicts.

    Nothing is deleted there. Raises Refused, Unreachable, WorkspaceError, CredentialInCore.
    """
    settle = Way.PUSH if overwrite else None
    remote, local, comparison = _compared(root, service, checkpoint, settle=settle)
    sent, left = comparison.having(Way.PUSH), _left(comparison, remote, local)
    for section in sent.core:
        refuse_credentials(section.key, section.local or "", known=section.remote or "")
    if dry_run:
        return Pushed(sent, left)
    done = send(service.layers(checkpoint), remote, sent)
    remember(root, remote.id, read_remote(service, checkpoint).side)
    left = replace(left, unsent=sent.only(done.refused), refused=done.refused)
    return Pushed(sent.without(done.refused), left, done.renamed)


def pull(
    root: Path, service: Service, checkpoint: str, *, overwrite: bool, dry_run: bool
) -> Pulled:
    """Bring a folder up to a checkpoint; with `overwrite`, the checkpoint settles conflicts.

    Nothing is deleted here. Raises Refused, Unreachable, WorkspaceError, CredentialInCore.
    """
    settle = Way.PULL if overwrite else None
    remote, local, comparison = _compared(root, service, checkpoint, settle=settle)
    taken = comparison.having(Way.PULL)
    for section in taken.core:
        refuse_credentials(section.key, section.remote or "", known=section.local or "")
    done = pulling.pull(root, local, taken, dry_run=dry_run)
    if not dry_run:
        remember(root, remote.id, remote.side)
    left = _left(comparison, remote, local, skipped=done.outcome.skipped)
    return Pulled(taken.without(done.skipped), done.outcome, left)


def _compared(
    root: Path, service: Service, checkpoint: str, *, settle: Way | None
) -> tuple[Remote, Local, Comparison]:
    """Read both sides and compare; conflicts go the way that settles them, if there is one."""
    remote = read_remote(service, checkpoint)
    local = read_local(root, remote=remote.id)
    found = compare(local.side, remote.side, local.base)
    if settle is not None:
        found = Comparison(
            _settled(found.core, settle),
            _settled(found.notes, settle),
            _settled(found.days, settle),
        )
    return remote, local, found


def _settled(differences: Iterable[Difference[T]], way: Way) -> tuple[Difference[T], ...]:
    return tuple(
        replace(item, way=way) if item.way is Way.CONFLICT else item for item in differences
    )


def _left(
    comparison: Comparison, remote: Remote, local: Local, *, skipped: Sequence[str] = ()
) -> Left:
    words = _of_no_section(local.reading.document.other_words)
    told = (*local.reading.skipped, *words, *remote.skipped, *skipped)
    return Left(comparison.having(Way.CONFLICT), comparison.only(()), {}, told)


def _of_no_section(words: int) -> list[str]:
    """Return what to tell of words of core that no checkpoint has a place for."""
    if not words:
        return []
    count = "1 word stands" if words == 1 else f"{words:,} words stand"
    return [f"{CORE}: {count} in no section of core, and stay in the folder alone."]
