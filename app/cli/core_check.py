"""No credential gets into core memory by the command line either."""

from app.layers.errors import CredentialInCore


def refuse_credentials(where: str, text: str, *, known: str) -> None:
    """Refuse a likely credential in the lines that `known` does not have: CredentialInCore."""
    from app.credentials import find_credential  # noqa: PLC0415  (it takes as long as all else)

    if (kind := find_credential(text, known=known)) is not None:
        raise CredentialInCore(where, kind)
