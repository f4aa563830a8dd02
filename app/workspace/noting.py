"""Write down what happened: one item at the end of a day's notes, or above their headings."""

from datetime import UTC, datetime
from pathlib import Path

from app.layers.daily import DayItem, time_of_day
from app.layers.day_file import add_to_day
from app.layers.note import read_date
from app.workspace.clock import local, zone_of
from app.workspace.errors import BadInput, ChangedMeanwhile
from app.workspace.folder import Folder
from app.workspace.outcome import Change, Outcome
from app.workspace.paths import day_path
from app.workspace.running import run
from app.workspace.texts import text_of

# A person saves a file now and then, not all the time.
ATTEMPTS = 5


def note(
    root: Path,
    text: str,
    *,
    date: str | None = None,
    heading: str | None = None,
    now: datetime | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Add an item to a day's notes, today's where no `date` is given, with the time of day then.

    What the day says already is not said twice. Where a person saves the file at the same moment,
    the item is added to what they saved. BadInput for a blank text or a heading that is not one
    line, InvalidInput for a date that is none; NotText, BadTimezone, and what `run` raises.
    """
    _check(text, heading)
    instant = now or datetime.now(UTC)

    def plan(folder: Folder) -> Outcome:
        here = local(instant, zone_of(folder))
        day = here.date() if date is None else read_date(date)
        at = time_of_day(here.replace(second=0)) if day == here.date() else None
        seen = folder.read(day_path(day))
        before = text_of(seen)
        after = add_to_day(before, [DayItem(text, day, at, heading)], day)
        if after == before:
            return Outcome(report=(f"{seen.path} says this already.",))
        return Outcome((Change(seen, after.encode()),), (f"Adds to {seen.path}.",))

    for _ in range(ATTEMPTS - 1):
        try:
            return run(root, plan, dry_run=dry_run)
        except ChangedMeanwhile:
            continue
    return run(root, plan, dry_run=dry_run)


def _check(text: str, heading: str | None) -> None:
    for what, given in (("note", text), ("heading", heading)):
        if given is not None and (not given.strip() or not _is_text(given)):
            raise BadInput(f"The {what} is blank, or holds NUL or half a surrogate pair.")
    if heading is not None and len(heading.splitlines()) > 1:
        raise BadInput("The heading is one line.")


def _is_text(given: str) -> bool:
    return "\0" not in given and not any("\ud800" <= character <= "\udfff" for character in given)
