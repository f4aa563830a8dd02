"""Compare-and-set: an edit names the version that it was made on (RFC 9110, 13.1.1)."""

from app.lineage.errors import PreconditionRequired, VersionMismatch

ANY_VERSION = "*"


def check_version(if_match: str | None, etag: str, *others: str) -> None:
    """Refuse an edit of another version than the stored one.

    `if_match` is a list of tags, or `*`; `etag` is the stored one's tag, `others` are those of its
    other forms. PreconditionRequired without an `if_match`, VersionMismatch where it has none.
    """
    if if_match is None:
        raise PreconditionRequired(etag)
    named = {tag.strip() for tag in if_match.split(",")}  # no tag of ours holds a comma
    if named.isdisjoint((ANY_VERSION, etag, *others)):
        raise VersionMismatch(etag)
