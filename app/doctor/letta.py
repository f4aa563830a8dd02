"""Letta, asked directly: its release, its database, and how it embeds."""

from collections.abc import Iterator
from typing import Any

from app.doctor.check import Check, fail, ok, warn
from app.doctor.http import Unanswered, ask
from app.settings import Settings

TESTED = "0.16."
LETTA, EMBEDDING = "letta", "letta embeds"


def check_letta(settings: Settings) -> Iterator[Check]:
    """Ask for the version, read through to its database, and look at how it embeds."""
    base = (settings.letta_base_url or "").rstrip("/")
    key = settings.letta_api_key
    secret = key.get_secret_value() if key else None
    try:
        version = _field(ask(f"{base}/v1/health/", key=secret), "version")
        # Its health is fine without a database; this is not.
        ask(f"{base}/v1/agents/count", key=secret)
    except Unanswered as error:
        yield fail(LETTA, f"{base} {error}.", do=_remedy(error))
        return
    yield check_version(str(version))
    yield _handle(settings, base, secret) if settings.letta_embedding else _ours(settings)


def check_version(version: str) -> Check:
    """Compare a release with those that the tests run against."""
    if version.startswith(TESTED):
        return ok(LETTA, f"{version} answers.")
    return warn(
        LETTA,
        f"{version} answers; letta-lineage is tested with {TESTED}x.",
        do="Run the release that letta/requirements.lock names.",
    )


def _ours(settings: Settings) -> Check:
    """Look whether our `/v1` is where Letta is told to find it, with the key that Letta sends."""
    key = settings.embeddings_key
    url = settings.own_embeddings_url
    try:
        ask(f"{url.rstrip('/')}/models", key=key.get_secret_value() if key else None)
    except Unanswered as error:
        if error.is_about_key:
            return fail(
                EMBEDDING,
                f"{url} does not take LINEAGE_EMBEDDINGS_KEY.",
                do="Give the service, and Letta as OPENAI_API_KEY, the same; restart both.",
            )
        return warn(
            EMBEDDING,
            f"by this service: {url} {error}, from here.",
            do="Start the service; where Letta is elsewhere, LINEAGE_EMBEDDINGS_URL must be "
            "reachable from there.",
        )
    return ok(EMBEDDING, f"by this service, at {url}.")


def _handle(settings: Settings, base: str, secret: str | None) -> Check:
    """Look whether Letta knows LETTA_EMBEDDING, and how long its vectors are."""
    handle = settings.letta_embedding
    try:
        known = ask(f"{base}/v1/models/embedding", key=secret)
    except Unanswered as error:
        return fail(EMBEDDING, f"{base} does not list its embeddings: it {error}.", do="See above.")
    models = [model for model in known if isinstance(model, dict)] if _is_list(known) else []
    model = next((model for model in models if model.get("handle") == handle), None)
    if model is None:
        names = ", ".join(sorted(str(model.get("handle")) for model in models)) or "none"
        return fail(
            EMBEDDING,
            f"Letta does not know {handle}.",
            do=f"Set LETTA_EMBEDDING to one that it knows ({names}), or give it that provider.",
        )
    length = model.get("embedding_dim")
    if length not in {None, settings.embedding_dim}:
        return fail(
            EMBEDDING,
            f"{handle} makes vectors of {length} numbers.",
            do=f"Set LINEAGE_EMBEDDING_DIM={length}; it is {settings.embedding_dim}.",
        )
    return ok(EMBEDDING, f"by {handle}, {settings.embedding_dim} numbers.")


def _remedy(error: Unanswered) -> str:
    if error.is_about_key:
        return "Set LETTA_API_KEY to Letta's password."
    if error.status is not None:
        return "See to Letta's log, and to its database."
    return "Start Letta (make letta), or correct LETTA_BASE_URL."


def _field(answer: Any, name: str) -> Any:
    if isinstance(answer, dict) and name in answer:
        return answer[name]
    raise Unanswered("is something else than Letta")


def _is_list(answer: object) -> bool:
    return isinstance(answer, list)
