"""A client of the service over HTTP; it imports nothing of the service itself."""

from app.client.service import Answer, Refused, Service, Unreachable

__all__ = ["Answer", "Refused", "Service", "Unreachable"]
