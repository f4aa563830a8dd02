"""How operations document their problems and the claim."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.api.problems import MEDIA_TYPE, all_problems

# What any operation behind the gate may answer.
ALWAYS = (
    "unauthenticated",
    "ambiguous-claim",
    "invalid-input",
    "ledger-unavailable",
    "internal-error",
)


PROBLEM_SCHEMA = "#/components/schemas/Problem"


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(description="`/problems/<slug>`; GET it for what to do.")]
    title: str
    status: int
    detail: str
    request_id: str


def problems(*slugs: str) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of an operation that may answer with these problems."""
    kinds = all_problems()
    documented: dict[int | str, dict[str, Any]] = {}
    for slug in dict.fromkeys((*slugs, *ALWAYS)):
        problem = kinds[slug]
        response = documented.setdefault(
            problem.status,
            {
                "description": "",
                "content": {MEDIA_TYPE: {"schema": {"$ref": PROBLEM_SCHEMA}, "examples": {}}},
            },
        )
        line = f"`{slug}`: {problem.title}."
        response["description"] = f"{response['description']} {line}".strip()
        response["content"][MEDIA_TYPE]["examples"][slug] = {"value": _example(slug)}
    return documented


def _example(slug: str) -> dict[str, Any]:
    problem = all_problems()[slug]
    return {
        "type": f"/problems/{slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": f"{problem.title}.",
        "request_id": "4f1c2a9be07d3385",
    }


CLAIM_HEADER = {
    "name": "X-Current-Node",
    "in": "header",
    "required": False,
    "description": "The claim: the id of the node that this request executes.",
    "schema": {"type": "string"},
}


def claims(example: str | None = None) -> dict[str, Any]:
    """Return what documents the claim's header; an example is filled in by Swagger UI."""
    header = CLAIM_HEADER if example is None else {**CLAIM_HEADER, "example": example}
    return {"parameters": [header]}
