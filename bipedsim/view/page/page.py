"""Serve the page in the browser with the robot and all data of an instant."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bipedsim.config import check
from bipedsim.errors import BipedSimError, ConfigError, install
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.objects import ObjectConfig
from bipedsim.view.page import figures
from bipedsim.view.page.bodies import FINEST
from bipedsim.view.page.client import AdaptedClient
from bipedsim.view.page.files import read_layout, state_of_instant, to_yaml
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.layers import LAYERS
from bipedsim.view.page.own_origin import only_own_pages
from bipedsim.view.page.params import LOCAL, PORT, PageParams
from bipedsim.view.page.plots import Plots
from bipedsim.view.page.scene import OPACITY, Scene
from bipedsim.view.page.state import DerivedState

SEEN_FROM = (1.1, -1.5, 0.55)
"""Initial position of the camera relative to the middle of the robot, in robot sizes: ahead of it, to its right."""
LOOKED_AT = 0.45
"""Height of the camera's target, in robot sizes."""


def check_page() -> None:
    """Check whether a page can be shown, without importing its packages.

    Raises:
        ConfigError: A package is not installed.
    """
    for name in ("viser", "fast_simplification"):
        if importlib.util.find_spec(name) is None:
            raise ConfigError(f"the page needs this package: {install('bipedsim[view]')}", name.replace("_", "-"))


def import_viser() -> Any:
    """Return the module viser.

    Raises:
        ConfigError: viser is not installed.
    """
    check_page()
    import viser

    return viser


def _check_host(host: str) -> None:
    """Raise OSError if no server can listen at ``host``, because viser would wait without end."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.bind(address)


class Page:
    """A page that a server in this process serves to browsers.

    The scene is below the node ``/world``, which moves so that the robot stays in the middle. ``page.scene.offset`` is
    the position of its origin.

    Args:
        robot: Robot that is shown.
        ground: Ground below the robot.
        host: Address at which the server listens; the default permits only this machine.
        port: Port of the server; if it is in use, the next free port is used.
        objects: Free objects; each instant contains their poses.
        title: Title of the page.
        finest: Maximum number of triangles of the robot.

    Attributes:
        robot: The robot.
        plots: Plots over time; None on a page without a run.
        gui: GUI of viser, for further controls: ``page.gui.add_button("Pause")``.
        server: Server of viser.
        scene: 3D scene.
        port: Port of the server.

    Raises:
        ConfigError: viser is not installed, or no port is free; the message contains a remedy.
    """

    def __init__(
        self,
        robot: Robot,
        ground: Ground,
        host: str = LOCAL,
        port: int = PORT,
        objects: Sequence[ObjectConfig] = (),
        title: str = "",
        finest: int = FINEST,
    ) -> None:
        viser = import_viser()
        # With an invalid port, viser would wait without end.
        check(PageParams(host, port), "page")
        self.robot = robot
        self.plots: Plots | None = None
        self._lock = threading.RLock()
        self._instant: Instant | None = None
        self._state: DerivedState | None = None
        self._chosen: tuple[str, int] | None = None
        self._closed = False
        self._boxes: dict[str, Any] = {}
        self._host = host
        title = title or robot.name
        try:
            _check_host(host)
            # viser prints its own start message.
            with contextlib.redirect_stdout(io.StringIO()), only_own_pages(host, AdaptedClient(title)):
                self.server: Any = viser.ViserServer(host=host, port=port, label=title, verbose=False)
        except (OSError, RuntimeError) as error:
            raise ConfigError(
                f"no page there: {error}. Use another one (--host, --port)", f"{host}, port {port}"
            ) from error
        self.port: int = self.server.get_port()
        self.gui: Any = self.server.gui
        self.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
        self.gui.main_panel.dock_right()
        self.scene = Scene(self.server.scene, robot, ground, objects, finest)
        size = self.scene.size
        self.server.initial_camera.position = tuple(size * x for x in SEEN_FROM)
        self.server.initial_camera.look_at = (0.0, 0.0, LOOKED_AT * size)
        self.server.initial_camera.fov = 0.8
        self._now = self.gui.add_html("", order=0.0)
        self._add_switches()
        with self.gui.add_folder("Body", order=90.0):
            self._body = self.gui.add_html(f"<div style='{figures.STYLE}'>click on a body of the robot</div>")
        self.scene.on_click(self._choose)

    def _add_switches(self) -> None:
        with self.gui.add_folder("Colours", order=80.0, expand_by_default=True):
            self.gui.add_html(figures.legend())
        with self.gui.add_folder("Show", order=100.0, expand_by_default=False):
            self._follows = self.gui.add_checkbox("follow the robot", self.scene.follows)
            self._follows.on_update(lambda _: self._follow(self._follows.value))
            self._opacity = self.gui.add_slider("opacity of the robot", 0.05, 1.0, 0.05, OPACITY)
            self._opacity.on_update(lambda _: self.scene.see_through(self._opacity.value))
            for name, (text, on) in LAYERS.items():
                box = self.gui.add_checkbox(text, on)
                box.on_update(lambda _, name=name, box=box: self._switch(name, box.value))
                self._boxes[name] = box
        with self.gui.add_folder("Files", order=110.0, expand_by_default=False):
            save = self.gui.add_button("Save layout", hint="plots, layers and camera")
            save.on_click(lambda event: self._save(event.client, "layout", self.layout(event.client)))
            self.add_upload("Load layout", self._load_layout, "a file of Save layout")
            state = self.gui.add_button("Save state", hint="time, base and joints as shown; posture for a robot.yaml")
            state.on_click(lambda event: self._save_state(event.client))

    @property
    def address(self) -> str:
        """URL of the page."""
        return f"http://{'localhost' if self._host in ('0.0.0.0', '::') else self._host}:{self.port}"

    def show(self, instant: Instant) -> DerivedState | None:
        """Show an instant in all browsers, as one update; return the derived state if the robot is visible."""
        with self._lock:
            if self._closed:
                return None
            with self.server.atomic():
                self._instant = instant
                self._state = self.scene.show(instant)
                self._now.content = figures.now(instant, self.robot, self._state)
                self._show_body()
            return self._state

    def close(self) -> None:
        """Stop the server; repeated calls are permitted."""
        with self._lock:
            if not self._closed:
                self._closed = True
                # viser prints its own message.
                with contextlib.redirect_stdout(io.StringIO()):
                    self.server.stop()

    def _refresh(self) -> None:
        if self._instant is not None:
            self.show(self._instant)

    def switch(self, name: str, on: bool) -> None:
        """Show or hide a layer; its check box follows."""
        self._boxes[name].value = on
        self._switch(name, on)

    def layout(self, client: Any = None) -> dict[str, Any]:
        """Return plots, layers and opacity, and the camera of a browser."""
        layout: dict[str, Any] = {} if self.plots is None else {"plots": self.plots.names}
        layout["layers"] = {name: self.scene.layers[name].on for name in LAYERS}
        layout.update(follow=self.scene.follows, opacity=float(self._opacity.value))
        if client is not None:
            layout["camera"] = [round(float(x), 4) for x in client.camera.position]
            layout["target"] = [round(float(x), 4) for x in client.camera.look_at]
        return layout

    def load_layout(self, layout: Mapping[str, Any], client: Any = None) -> None:
        """Apply a layout; missing parts stay as they are."""
        with self._lock:
            for name, on in layout.get("layers", {}).items():
                self.switch(name, bool(on))
            self._follows.value = bool(layout.get("follow", self._follows.value))
            self._follow(self._follows.value)
            self._opacity.value = float(layout.get("opacity", self._opacity.value))
            self.scene.see_through(self._opacity.value)
            if self.plots is not None and "plots" in layout:
                self.plots.names = layout["plots"]
            if client is not None and "camera" in layout and "target" in layout:
                client.camera.position, client.camera.look_at = layout["camera"], layout["target"]
            self._refresh()

    def add_upload(self, label: str, load: Callable[[bytes, str, Any], None], hint: str) -> None:
        """Add a button that loads a YAML file; errors are shown in the browser.

        Args:
            label: Text of the button.
            load: Called with content and name of the file, and the client of viser.
            hint: Description of the file.
        """
        button = self.gui.add_upload_button(label, mime_type=".yaml,.yml", hint=hint)

        def on_upload(event: Any) -> None:
            try:
                load(button.value.content, button.value.name, event.client)
            except BipedSimError as error:
                event.client.add_notification(f"{label} failed", str(error), color="red")

        button.on_upload(on_upload)

    def _load_layout(self, content: bytes, name: str, client: Any) -> None:
        self.load_layout(read_layout(content, name), client)

    def _save(self, client: Any, kind: str, content: Mapping[str, Any]) -> None:
        if client is not None:
            client.send_file_download(f"{self.robot.name}_{kind}.yaml", to_yaml(content), save_immediately=True)

    def _save_state(self, client: Any) -> None:
        if self._instant is not None and self._instant.placed:
            self._save(client, "state", state_of_instant(self.robot, self._instant))

    def _switch(self, name: str, on: bool) -> None:
        with self._lock:
            self.scene.layers[name].switch(on)
            self._refresh()

    def _follow(self, on: bool) -> None:
        with self._lock:
            self.scene.follows = on
            if not on:
                self.scene.reset_offset()
            self._refresh()

    def _choose(self, link: str, joint: int) -> None:
        with self._lock:
            self._chosen = link, joint
            self._show_body()

    def _show_body(self) -> None:
        if self._chosen is not None and self._instant is not None:
            self._body.content = figures.body(self._instant, self.robot, self._state, *self._chosen)
