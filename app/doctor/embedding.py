"""The embedder that this service searches with."""

from app.doctor.check import Check, fail, ok
from app.doctor.http import Unanswered, ask
from app.settings import Settings

NAME = "embedder"


def check_embedder(settings: Settings) -> Check:
    """Embed a word, where an endpoint does it."""
    if settings.embedder == "wordllama":
        return ok(NAME, "wordllama, in the process.")
    key = settings.embedding_api_key
    url = f"{(settings.embedding_url or '').rstrip('/')}/embeddings"
    body = {"model": settings.embedding_model, "input": ["letta-lineage doctor"]}
    try:
        answer = ask(url, key=key.get_secret_value() if key else None, body=body)
        length = len(answer["data"][0]["embedding"])
    except Unanswered as error:
        setting = "LINEAGE_EMBEDDING_API_KEY" if error.is_about_key else "LINEAGE_EMBEDDING_URL"
        return fail(NAME, f"{url} {error}.", do=f"See to the endpoint, or correct {setting}.")
    except (KeyError, IndexError, TypeError):
        return fail(
            NAME,
            f"{url} answers otherwise than OpenAI's API does.",
            do="LINEAGE_EMBEDDING_URL is the base URL of an OpenAI-compatible API, up to /v1.",
        )
    if length != settings.embedding_dim:
        return fail(
            NAME,
            f"{settings.embedding_model} makes vectors of {length} numbers.",
            do=f"Set LINEAGE_EMBEDDING_DIM={length}; it is {settings.embedding_dim}.",
        )
    return ok(NAME, f"{settings.embedding_model} at {settings.embedding_url}, {length} numbers.")
