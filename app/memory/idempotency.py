"""Repeated requests, as the use cases and their callers speak of them."""

from app.db.idempotency import Answer, Once

__all__ = ["Answer", "Once"]
