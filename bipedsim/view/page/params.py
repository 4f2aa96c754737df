"""Define the address of a page and whether to open a browser, for all commands and nodes with a page."""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param

LOCAL = "127.0.0.1"
PORT = 8080


@dataclass(frozen=True)
class PageParams:
    """Parameters of a page."""

    host: str = param(LOCAL, "where the page is served; 0.0.0.0 lets other machines look and press buttons")
    port: int = param(PORT, "of the page; where it is in use the next free one is taken", low=0, high=65535)
    browser: bool = param(True, "open a browser on the page, whose address is printed in any case")
