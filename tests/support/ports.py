"""Loopback ports that stay ours while their server is down."""

import socket

LOOPBACK = "127.0.0.1"


def reserve_port() -> socket.socket:
    """Return a bound socket that never listens: close it to give the port back.

    While it is open, connects to the port are refused unless a server listens there, no other
    process is handed the port, and a server that sets SO_REUSEADDR (uvicorn and asyncio do) may
    bind it as often as it likes.
    """
    reservation = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind((LOOPBACK, 0))
    return reservation


def port_of(bound: socket.socket) -> int:
    """Return the port number a socket is bound to."""
    port = bound.getsockname()[1]
    assert isinstance(port, int)
    return port
