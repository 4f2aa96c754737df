"""Only pages that this server gave may open its WebSocket: any other page in the browser could press its buttons.

A browser says in ``Origin`` which page asks, and in ``Host`` which server the page believes to reach. They must be the
same. ``Host`` must be a name of this machine: another one may lead here by DNS rebinding. Programs that are no browser
send no ``Origin``. They could send any, and are let in.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit


def refused(origin: str | None, host: str | None, listens_at: str) -> str:
    """Return why a WebSocket is refused; empty if it may be opened.

    Args:
        origin, host: The headers of the request; None where they are missing.
        listens_at: Where the server listens.
    """
    if origin is None:
        return ""
    try:
        asks, reached = urlsplit(origin), urlsplit(f"//{host or ''}")
        same = asks.netloc.lower() == reached.netloc.lower() and bool(reached.hostname)
    except ValueError:
        same = False
    if not same:
        return f"a page of {origin} may not use the page of {host}"
    if not _is_this_machine((reached.hostname or "").lower(), listens_at.lower()):
        return f"{reached.hostname} is no name of this machine; open the page by its address"
    return ""


def _is_this_machine(name: str, listens_at: str) -> bool:
    own = socket.gethostname().lower()
    if name in ("localhost", listens_at, own, f"{own}.local", socket.getfqdn().lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.endswith(".localhost")
    return True


@contextmanager
def only_own_pages(listens_at: str) -> Iterator[None]:
    """Let the WebSocket servers that begin meanwhile refuse other pages; viser has no setting for it."""
    from websockets.asyncio import server

    serve = server.serve

    def checked(handler: Any, *args: Any, process_request: Callable[[Any, Any], Any] | None = None, **more: Any) -> Any:
        def process(connection: Any, request: Any) -> Any:
            why = refused(request.headers.get("Origin"), request.headers.get("Host"), listens_at)
            if why and "upgrade" in request.headers.get("Connection", "").lower():
                print(f"bipedsim: the page refused a connection: {why}", file=sys.stderr, flush=True)
                return connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n")
            return None if process_request is None else process_request(connection, request)

        return serve(handler, *args, process_request=process, **more)

    server.serve = checked  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        server.serve = serve  # type: ignore[misc]
