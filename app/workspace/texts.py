"""Files as text: UTF-8, with every byte coming back as it was."""

from app.workspace.errors import NotText
from app.workspace.folder import Seen


def text_of(seen: Seen) -> str:
    """Return a file's text, empty where there is none. NotText."""
    try:
        return (seen.data or b"").decode()
    except UnicodeDecodeError:
        raise NotText(seen.path) from None
