"""The file of a day: what is added to it, and that nothing else changes."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence

from app.layers.daily import DayItem, read_day, title_of
from app.layers.markdown.blocks import HEADING, Kind, blocks
from app.layers.markdown.facts import as_item, plain
from app.layers.markdown.lines import BOM, newline_of
from app.layers.markdown.shields import without_fences
from app.layers.words import has_words


def render_day(items: Iterable[DayItem], date: dt.date) -> str:
    """Return the file of a day that has none yet."""
    return add_to_day("", items, date)


def add_to_day(text: str, items: Iterable[DayItem], date: dt.date) -> str:
    """Return a day's file with items at its end, below their headings; nothing else changes.

    Those without a heading come before the first one that is not the day's own, which is written
    where there is no text yet. Items whose fact the file has already are left out.
    """
    there = {item.fact for item in read_day(text, date)}
    new: dict[str, DayItem] = {}
    for item in items:
        if item.fact not in there:
            new.setdefault(item.fact, item)
    if not new:
        return text
    return _with(text if text.strip() else f"# {date.isoformat()}\n", list(new.values()), date)


def _with(text: str, items: Sequence[DayItem], date: dt.date) -> str:
    """Return a file with more items: all at once where that reads well, else by halves."""
    written = _added(text, items, date, write=_written)
    if _holds(written, text, items, date):
        return written
    if len(items) == 1:
        return _with_odd(text, items, date)
    half = len(items) // 2
    return _with(_with(text, items[:half], date), items[half:], date)


def _with_odd(text: str, items: Sequence[DayItem], date: dt.date) -> str:
    """Return a file with an item that does not read well as it is, or where it belongs."""
    # A fence that somebody left open further up would end at one of the item's; a heading that is
    # indented would belong to an item in front of it.
    safe = _added(text, items, date, write=_without_fences)
    if not _holds(safe, text, items, date):
        for write in (_written, _without_fences):
            written = _added(text, items, date, write=write, at_end=True)
            if _holds(written, text, items, date):
                return written
    return safe


def _holds(written: str, text: str, items: Sequence[DayItem], date: dt.date) -> bool:
    """Tell whether a file says what it said before, and each item below its heading."""
    wanted = {item.fact: title_of(item.heading, date) for item in items if has_words(item.text)}
    found = read_day(written, date)
    others = [item for item in found if item.fact not in wanted]
    added = {item.fact: item.heading for item in found if item.fact in wanted}
    return added == wanted and others == read_day(text, date)


def _added(
    text: str,
    items: Sequence[DayItem],
    date: dt.date,
    *,
    write: Callable[[DayItem], str],
    at_end: bool = False,
) -> str:
    loose = [item for item in items if title_of(item.heading, date) is None]
    headed = [item for item in items if title_of(item.heading, date) is not None]
    at = len(text) if at_end else _place(text, date)
    before, after = text[:at], text[at:]
    if loose:
        before = _appended(before, loose, date, write=write, newline=newline_of(text))
        blank = not after.partition("\n")[0].strip()
        after = after if blank else newline_of(text) + after
    return _appended(before + after, headed, date, write=write, newline=newline_of(text))


def _place(text: str, date: dt.date) -> int:
    """Return where items without a heading go: below none, or below the day's own."""
    found = blocks(text)
    headings = [block for block in found if block.kind is Kind.HEADING]
    titled = [block for block in headings if title_of(block.title, date) is not None]
    if not titled or titled[-1] != headings[-1]:
        return len(text)
    above = [block.end for block in found if block.end <= titled[0].start]
    return above[-1] if above else len(BOM) * text.startswith(BOM)


def _appended(
    text: str,
    items: Sequence[DayItem],
    date: dt.date,
    *,
    write: Callable[[DayItem], str],
    newline: str,
) -> str:
    """Return a text with items at its end, each below its heading."""
    if not items:
        return text
    below, in_list = _end(text, date)
    for item in items:
        if (title := title_of(item.heading, date)) != below:
            below, in_list = title, False
            heading = _heading(title) if title else f"# {date.isoformat()}"
            text = f"{_ended(text, newline, apart=True)}{heading}{newline}"
        text = _ended(text, newline, apart=not in_list)
        text += write(item).replace("\n", newline)
        in_list = True
    return text


def _end(text: str, date: dt.date) -> tuple[str | None, bool]:
    """Return the heading that the end of a text stands below, and whether a list item ends it."""
    found = blocks(text)
    titles = [block.title for block in found if block.kind is Kind.HEADING]
    title = title_of(titles[-1], date) if titles else None
    return title, bool(found) and found[-1].kind is Kind.ITEM


def _heading(title: str) -> str:
    """Return a heading of these words, closed where its last ones would be taken for the end."""
    line = f"## {title}"
    read = HEADING.fullmatch(line)
    return line if read and read[2] == title else f"{line} ##"


def _written(item: DayItem) -> str:
    said = plain(item.text)
    return as_item(f"- {item.at} {said}" if item.at else f"- {said}")


def _without_fences(item: DayItem) -> str:
    return without_fences(_written(item))


def _ended(text: str, newline: str, *, apart: bool) -> str:
    """Return the text with its last line ended, and a blank line after it where it must be."""
    if not text.removeprefix(BOM):
        return text
    if not text.endswith("\n"):
        text += newline
    last = text[text.rfind("\n", 0, -1) + 1 :]
    return text + newline if apart and last.strip() else text
