"""Changes of a section's text: an item goes, a reference stays, and nothing else moves."""

from collections.abc import Sequence

from app.layers.markdown.blocks import Block, statements
from app.layers.markdown.facts import fact
from app.layers.markdown.lines import MARKER, lines_of, newline_of
from app.layers.movements.state import reference_to, refers_to


def without_items(body: str, items: Sequence[Block], ref: str) -> str:
    """Return the text with a reference in the place of the first of these blocks, the others gone.

    Where the text refers to the note elsewhere already, no second reference is left.
    """
    all_items = statements(body)
    refer = not any(refers_to(fact(block.text), ref) for block in all_items if block not in items)
    line = reference_to(ref)
    changed = body
    for at, block in reversed(list(enumerate(items))):
        goes = at > 0 or not refer
        changed = _removed(changed, block) if goes else _replaced(changed, block, line)
    if not body.endswith("\n"):
        changed = changed.rstrip("\r\n")
    if len(statements(changed)) == len(all_items) - len(items) + refer:
        return changed
    # What stood below one of them would become a part of what stands above it.
    for block in reversed(items):
        body = _replaced(body, block, line)
    return body


def with_item(body: str, item: str) -> str:
    """Return the text with a list item behind what it says, before the blank lines at its end."""
    newline = newline_of(body)
    item = item.replace("\n", newline)
    said = body.rstrip()
    if not said:
        return f"{newline}{item}{newline}" if body else item.rstrip("\r\n")
    end = body[len(said) :]
    added = said + newline + item.rstrip("\r\n")
    return added + end


def with_reference(body: str, former: str, ref: str) -> str:
    """Return the text with references to one note in the place of those to another."""
    behind, now = f"({reference_to(former)})", f"({reference_to(ref)})"
    for block in reversed(statements(body)):
        if refers_to(fact(block.text), former):
            body = _replaced(body, block, reference_to(ref))
        elif block.text.rstrip().endswith(behind):
            text = block.text.replace(behind, now)
            body = f"{body[: block.start]}{text}{body[block.end :]}"
    return body


def _replaced(body: str, block: Block, line: str) -> str:
    marker = _marker(block)
    *_, last = lines_of(block.text)
    end = last[len(last.rstrip("\r\n")) :]
    return f"{body[: block.start]}{marker}{line}{end}{body[block.end :]}"


def _marker(block: Block) -> str:
    """Return what makes a block an item of its list; one may stand alone, its text below it."""
    marker = MARKER.match(block.text)
    return f"{marker[1]}{marker[2]}{marker[3] or ' '}" if marker else ""


def _removed(body: str, block: Block) -> str:
    before, after = body[: block.start], body[block.end :]
    alone = not before.strip() or before.endswith(("\n\n", "\n\r\n"))
    lines = lines_of(after)
    if alone and before and lines and not lines[0].strip():
        after = "".join(lines[1:])
    return before + after
