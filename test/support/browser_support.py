"""A real browser for tests of pages: headless Chromium, driven by Playwright, its drawing in software."""

from __future__ import annotations

import colorsys
import io
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[np.float64]

ARGUMENTS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 900, 360
"""Of the window [px]: wide enough that the panel of controls leaves the middle free."""
SMALL = (240, 100)
"""Size of a window without a viewer [px]: a small one is faster, as software draws every pixel."""
PATIENCE = 240.0
"""Longest wait for an expected event [s]: the machine is shared and draws in software."""

_PLACE = """name => {
    const player = window.__viserMutable, meshes = [];
    player.nodeRefFromName[name].traverse((one) => { if (one.isMesh) meshes.push(one); });
    const { geometry, matrixWorld } = meshes[0];
    geometry.computeBoundingSphere();
    const at = geometry.boundingSphere.center.clone().applyMatrix4(matrixWorld).project(player.camera);
    const box = player.canvas.getBoundingClientRect();
    return [box.x + 0.5 * (at.x + 1) * box.width, box.y + 0.5 * (1 - at.y) * box.height];
}"""
"""Where the middle of a body is in the window, by the camera of the page."""


class Tab:
    """A page in the browser, and its errors.

    Attributes:
        page: Of Playwright.
        errors: Errors of its scripts.
        requests: Requested addresses.
        frames: Messages received by websocket.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.frames = 0
        page.set_default_timeout(1e3 * PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: socket.on("framereceived", self._received))

    def _received(self, _: Any) -> None:
        self.frames += 1

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds; Playwright works meanwhile."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"waited in vain: {what}"
            self.page.wait_for_timeout(100)

    def picture(self) -> Array:
        """Return the image (H, W, 3) of the page, 0 to 1."""
        from PIL import Image
        from playwright.sync_api import Error

        # Before it was first painted there is nothing to be taken.
        end = time.monotonic() + PATIENCE
        while True:
            try:
                data = self.page.screenshot()
                break
            except Error:
                assert time.monotonic() < end, "the browser gives no picture"
                self.page.wait_for_timeout(200)
        taken = Image.open(io.BytesIO(data))
        return np.asarray(taken.convert("RGB"), dtype=np.float64) / 255.0

    def canvas_width(self) -> float:
        """Return the width of the 3D view [px], once it is there."""
        script = "() => { const one = window.__viserMutable; return one && one.canvas ? one.canvas.clientWidth : 0 }"
        self.wait(lambda: 0 < float(self.page.evaluate(script)) < WIDTH, "the 3D view next to the panel")
        return float(self.page.evaluate(script))

    def text(self, element: str) -> str:
        """Return the text of the element with this id."""
        return str(self.page.locator(f"[id='{element}']").inner_text())

    def body_at(self, joint: int) -> tuple[float, float]:
        """Return the position in the window of the body behind the joint of this number [px]."""
        name = self.page.evaluate(
            "end => Object.keys(window.__viserSceneTree.getState()).find((name) => name.includes(end))",
            f"/{joint}/look_",
        )
        x, y = self.page.evaluate(_PLACE, name)
        return float(x), float(y)


@contextmanager
def browser(size: tuple[int, int] = (WIDTH, HEIGHT)) -> Iterator[Callable[[str], Tab]]:
    """Give a function that opens an address in a new window; skip the test where there is no browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)

        def opened(address: str) -> Tab:
            tab = Tab(chromium.new_page(viewport={"width": size[0], "height": size[1]}))
            tab.page.goto(address, wait_until="commit")
            return tab

        try:
            yield opened
        finally:
            chromium.close()


def project(points: Array, eye: Array, target: Array, fov: float, width: float = WIDTH) -> Array:
    """Project ``points`` (n, 3) to the image (n, 2) [px], x to the right and y down.

    Args:
        points: In the axes of the scene [m].
        eye, target: (3,) camera position and target [m], z up.
        fov: Vertical opening of the camera [rad].
        width: Width of the 3D view [px].
    """
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    down = np.cross(ahead, right)
    local = (points - eye) @ np.column_stack([right, down, ahead])
    focal = 0.5 * HEIGHT / np.tan(0.5 * fov)
    return np.asarray(focal * local[:, :2] / local[:, 2:] + [0.5 * width, 0.5 * HEIGHT])


def share_of(picture: Array, at: Array, colour: str, radius: int = 3) -> float:
    """Return the fraction of the pixels around ``at`` (2,) that have the hue of ``colour``, light or shaded."""
    red, green, blue = (value / 255.0 for value in bytes.fromhex(colour.removeprefix("#")))
    hue = colorsys.rgb_to_hsv(red, green, blue)[0]
    x, y = (int(value) for value in np.round(at))
    cut = picture[max(0, y - radius) : y + radius + 1, max(0, x - radius) : x + radius + 1].reshape(-1, 3)
    hits = 0
    for pixel in cut:
        h, saturation, _ = colorsys.rgb_to_hsv(*(float(value) for value in pixel))
        hits += saturation > 0.35 and abs((h - hue + 0.5) % 1.0 - 0.5) < 0.06
    return hits / max(1, len(cut))
