"""The measuring stick: what FastAPI alone costs on this machine, at this moment."""

from fastapi import FastAPI
from pydantic import BaseModel


class Plain(BaseModel):
    """A small answer."""

    id: int
    name: str
    ok: bool


app = FastAPI()


@app.get("/plain")
async def plain() -> Plain:
    """Return a small model, made anew for each request."""
    return Plain(id=1, name="plain", ok=True)
