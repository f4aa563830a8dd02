"""Requests read strictly: JSON in UTF-8 and nothing else, no unknown query parameters."""

import json
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, get_args, get_origin
from urllib.parse import unquote_to_bytes

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from app.api.errors import UnknownQueryParameter, UnsupportedMediaType
from app.lineage.errors import InvalidInput
from app.lineage.json_rules import check_characters

# `metadata.<key>=` filters where an operation has them; no list of names could say which.
METADATA_PREFIX = "metadata."


class StrictRequest(Request):
    """A request whose JSON is JSON: no NaN, no NUL, no half characters."""

    async def json(self) -> Any:
        """Return the body's value, read once; InvalidInput says what is wrong and where."""
        if not hasattr(self, "_json"):
            self._json = _read_json(await self.body())
        return self._json


def _read_json(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
        value = DECODER.decode(text)
    except UnicodeDecodeError:
        raise InvalidInput("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"The body is not JSON: {error.msg}.", place=("body", error.pos)
        ) from None
    except RecursionError:
        raise InvalidInput("The body nests too deep.") from None
    except ValueError:
        # Python refuses to read integers of more than 4,300 digits.
        raise InvalidInput("The body holds a number that is too long.") from None
    # JSON can write them only by an escape, and most bodies have none.
    if "\\u" in text:
        check_characters(value)
    return value


class StrictRoute(APIRoute):
    """A route that checks media type, query names and characters before anything else."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with the checks before it."""
        handle = super().get_route_handler()
        parameters = self.dependant.query_params
        names = {parameter.alias for parameter in parameters}
        lists = {parameter.alias for parameter in parameters if _takes_many(parameter)}
        takes_body = self.body_field is not None
        filtered = bool((self.openapi_extra or {}).get("x-metadata-filters"))

        async def checked(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            if request.scope["query_string"]:
                _check_query(strict, names, lists=lists, filtered=filtered)
            if takes_body and await strict.body():
                _check_media_type(strict)
                # Read here: the framework would turn our errors into a 400 of its own.
                await strict.json()
            return await handle(strict)

        return checked


def metadata_filters(request: Request) -> list[tuple[str, str]]:
    """Return the `metadata.<key>=value` pairs of the query string, in order."""
    return [
        (name.removeprefix(METADATA_PREFIX), value)
        for name, value in request.query_params.multi_items()
        if name.startswith(METADATA_PREFIX)
    ]


def _takes_many(parameter: Any) -> bool:
    annotation = parameter.field_info.annotation
    return any(get_origin(kind) is list for kind in (annotation, *get_args(annotation)))


def _check_query(request: Request, names: set[str], *, lists: set[str], filtered: bool) -> None:
    try:
        unquote_to_bytes(request.scope["query_string"]).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("The query string is not UTF-8.", place=("query",)) from None
    for name, value in request.query_params.multi_items():
        check_characters(name, place=("query",))
        check_characters(value, place=("query", name))
        if filtered and name.startswith(METADATA_PREFIX):
            continue
        if name not in names:
            raise UnknownQueryParameter(name)
        if name not in lists and len(request.query_params.getlist(name)) > 1:
            raise InvalidInput("It was sent more than once.", place=("query", name))


def _check_media_type(request: Request) -> None:
    sent = request.headers.get("content-type", "")
    media_type = sent.partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType(media_type)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that comes twice: keeping one of its values would lose the other in silence."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise InvalidInput("An object names a key twice.")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidInput(f"{name} is not JSON.")


# Made once: `json.loads` would make one for each request.
DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object)
