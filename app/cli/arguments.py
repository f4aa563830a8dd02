"""What an argument has to be before a command runs: bad ones are told by their names."""

from typing import Any

import typer
from typer.core import TyperCommand

from app.lineage.errors import InvalidInput
from app.lineage.ids import NodeId, checkpoint_id


class Command(TyperCommand):
    """A command whose words are Unicode; the names of files may be any bytes."""

    def invoke(self, ctx: Any) -> Any:
        """Run it; BadParameter for a word that is no Unicode, as the shell has bytes for it."""
        for param in ctx.command.params:
            value = ctx.params.get(param.name)
            for word in value if isinstance(value, list | tuple) else [value]:
                if isinstance(word, str) and not _is_unicode(word):
                    raise typer.BadParameter("This is not UTF-8.", ctx=ctx, param=param)
        return super().invoke(ctx)


def known_checkpoint(given: str | None) -> str | None:
    """Return the id of a checkpoint, or None where none is given; BadParameter for no id."""
    if given is None:
        return None
    try:
        return checkpoint_id(given, None)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from None


def known_node(given: str) -> str:
    """Return the id of a node; BadParameter for no id."""
    if NodeId.parse(given) is None:
        raise typer.BadParameter("That is no node's id: <checkpoint>.<name>, as exp1.fast.")
    return given


def _is_unicode(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
