"""Show a robot at rest on a page, with a slider for each joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.view.page.files import read_posture
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.page import Page
from bipedsim.view.page.params import LOCAL, PORT


class PosturePage:
    """Page of a robot at rest.

    The base moves so that the soles are on the ground, by least squares.

    Args:
        robot: The robot.
        host, port: See :class:`Page`.

    Attributes:
        page: The page.
        q: Displayed configuration (nq,).
    """

    def __init__(self, robot: Robot, host: str = LOCAL, port: int = PORT) -> None:
        self.page = page = Page(robot, Ground.flat(), host, port, title=robot.name)
        self._robot = robot
        self.q = robot.q_nominal.copy()
        gui = page.gui
        for name in ("axes", "inertia"):
            page.switch(name, name == "axes")
        self._sliders: dict[str, Any] = {}
        with gui.add_folder("Joints", order=10.0):
            gui.add_button("Standing posture").on_click(lambda _: self.move(self._standing))
            page.add_upload("Load state", self._load, "joint positions of Save state, or posture of a robot.yaml")
            for i, name in enumerate(robot.joint_names):
                low, high = (float(np.clip(x[i], -np.pi, np.pi)) for x in (robot.position_lower, robot.position_upper))
                start = round(float(robot.posture[i]), 3)
                slider = gui.add_slider(name, min(low, start), max(high, start, low + 1e-3), 1e-3, start)
                slider.on_update(lambda event: self.move({}) if event.client is not None else None)
                self._sliders[name] = slider
        self.move(self._standing)

    @property
    def _standing(self) -> dict[str, float]:
        return dict(zip(self._robot.joint_names, self._robot.posture.tolist(), strict=True))

    def _load(self, content: bytes, name: str, _client: Any) -> None:
        self.move(read_posture(content, name, self._robot))

    def move(self, posture: Mapping[str, float]) -> None:
        """Move some joints [rad], and show the robot at the positions of all sliders."""
        for name, value in posture.items():
            slider = self._sliders[name]
            slider.value = round(float(np.clip(value, slider.min, slider.max)), 3)
        angles = np.array([float(slider.value) for slider in self._sliders.values()])
        notes: tuple[str, ...] = ()
        try:
            self.q = self._robot.settle(angles)
        except ConfigError as error:
            # The robot stays where its closed chains permit it.
            notes = (str(error),)
        self.page.show(Instant(t=0.0, q=self.q, v=np.zeros(self._robot.model.nv), joint_position=angles, notes=notes))

    def wait(self) -> None:
        """Serve the page until Ctrl-C."""
        try:
            self.page.server.sleep_forever()
        except KeyboardInterrupt:
            pass
        finally:
            self.page.close()
