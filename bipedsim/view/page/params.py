"""Define the address of a page, for all commands and nodes with a page."""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param

LOCAL = "127.0.0.1"
PORT = 8080


@dataclass(frozen=True)
class PageParams:
    """Parameters of a page."""

    host: str = param(LOCAL, "address at which the page is served; 0.0.0.0 gives other machines full access to it")
    port: int = param(PORT, "port of the page; if it is in use, the next free one", low=0, high=65535)
