"""Adapt viser's client: title of the tab, contrast, names of the controls, and the layout of narrow windows."""

from __future__ import annotations

import gzip
from html import escape
from importlib.resources import files
from typing import Any


def additions() -> str:
    """Return the HTML that adapts the client, for the end of its page."""
    own = files(__package__)
    style, script = (own.joinpath(name).read_text(encoding="utf-8") for name in ("client.css", "client.js"))
    return f"<style>{style}</style><script>{script}</script>"


def adapted(page: str, title: str, more: str = "") -> str:
    """Return the page of the client with a title and with ``more`` HTML at its end."""
    page = page.replace("<title>Viser</title>", f"<title>{escape(title)}</title>")
    body = page.rindex("</body>")
    return f"{page[:body]}{additions()}{more}{page[body:]}"


class AdaptedClient:
    """Adapts the page in the responses of viser's server.

    Args:
        title: Title of the page.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._bodies: dict[bool, bytes] = {}

    def __call__(self, response: Any) -> Any:
        """Return the response, with another body if it is the page."""
        if response is None or not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        zipped = response.headers.get("Content-Encoding") == "gzip"
        if zipped not in self._bodies:
            page = (gzip.decompress(response.body) if zipped else response.body).decode("utf-8")
            body = adapted(page, self._title).encode("utf-8")
            self._bodies[zipped] = gzip.compress(body) if zipped else body
        response.body = self._bodies[zipped]
        del response.headers["Content-Length"]
        response.headers["Content-Length"] = str(len(response.body))
        return response
