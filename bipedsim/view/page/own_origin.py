"""Accept WebSocket connections only from pages of this server; other pages in the browser could press its buttons.

A browser sends the origin of a page as ``Origin``, and the server that the page addresses as ``Host``. They must be
equal. ``Host`` must be a name of this machine, because DNS rebinding may direct another name to it. Programs other than
browsers send no ``Origin``. They could send any value, so they are accepted.
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
    """Return why a WebSocket connection is refused; empty if it is accepted.

    Args:
        origin, host: Headers of the request; None if they are missing.
        listens_at: Host name at which the server listens.
    """
    if origin is None:
        return ""
    try:
        page, server = urlsplit(origin), urlsplit(f"//{host or ''}")
        same = page.netloc.lower() == server.netloc.lower() and bool(server.hostname)
    except ValueError:
        same = False
    if not same:
        return f"a page of {origin} may not use the page of {host}"
    if not _is_this_machine((server.hostname or "").lower(), listens_at.lower()):
        return f"{server.hostname} is not a name of this machine. Open the page by its address"
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
def only_own_pages(listens_at: str, adapt: Callable[[Any], Any] = lambda response: response) -> Iterator[None]:
    """Patch the WebSocket servers that start in this context so that they refuse other pages; viser has no option.

    Args:
        listens_at: Host name at which the server listens.
        adapt: Returns what to send instead of a response to an HTTP request.
    """
    from websockets.asyncio import server

    serve = server.serve

    def checked(handler: Any, *args: Any, process_request: Callable[[Any, Any], Any] | None = None, **more: Any) -> Any:
        def process(connection: Any, request: Any) -> Any:
            reason = refused(request.headers.get("Origin"), request.headers.get("Host"), listens_at)
            if reason and "upgrade" in request.headers.get("Connection", "").lower():
                print(f"bipedsim: the page refused a connection: {reason}", file=sys.stderr, flush=True)
                return connection.respond(HTTPStatus.FORBIDDEN, f"{reason}\n")
            return None if process_request is None else adapt(process_request(connection, request))

        return serve(handler, *args, process_request=process, **more)

    server.serve = checked  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        server.serve = serve  # type: ignore[misc]
