"""The page in the browser: the robot and all that is known of it at one instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.objects import ObjectConfig
from bipedsim.view.page.instant import Instant


class Page:
    """A page that a server in this process gives to browsers.

    Args:
        robot: What is shown.
        ground: What it stands on.
        host: Where the server listens; the default is for this machine alone.
        port: Of the server; the next free one is taken where it is in use.
        objects: Free objects, whose poses come with each instant.
        title: Of the page.

    Attributes:
        gui: Of viser, for controls that others add: ``page.gui.add_button("Pause")``.
        server: Of viser.
        port: Where the server listens.

    Raises:
        ConfigError: viser is not installed, or no port is free; the message says what to do.
    """

    def __init__(
        self,
        robot: Robot,
        ground: Ground,
        host: str = "127.0.0.1",
        port: int = 8080,
        objects: Sequence[ObjectConfig] = (),
        title: str = "",
    ) -> None:
        raise NotImplementedError

    server: Any
    gui: Any
    port: int

    @property
    def address(self) -> str:
        """What to open in a browser."""
        raise NotImplementedError

    def show(self, instant: Instant) -> None:
        """Show an instant in all browsers, all of it at once."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop the server; may be called twice."""
        raise NotImplementedError
