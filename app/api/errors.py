"""What can go wrong in HTTP itself, beside the errors of the rules."""

from app.lineage.errors import InvalidInput, LineageError


class UnsupportedMediaType(LineageError):
    """The body is of another media type than the operation takes."""

    def __init__(self, media_type: str, *, taken: str = "application/json") -> None:
        super().__init__(f"The body's media type is {media_type or 'missing'!r}; {taken} is taken.")


class UnknownQueryParameter(InvalidInput):
    """A query parameter that the operation does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no query parameter {name!r}.", place=("query", name))
