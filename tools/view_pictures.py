"""Generate the images of docs/view.md from a run, its page and a headless Chromium.

    .venv/bin/python tools/view_pictures.py

The tool needs the packages of the tests and a system-wide Chromium. Software rendering takes some time per image.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from pathlib import Path

from bipedsim.config import RunConfig
from bipedsim.runs import run
from bipedsim.view.page import open_replay, read_shown

FOLDER = Path(__file__).parents[1] / "docs" / "view"
WIDTH, HEIGHT = 1280, 860
ARGUMENTS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
SETTLED = 50.0
"""Waiting time until the page is complete and its notifications have disappeared [s]."""
PICTURES = (
    ("page", "talos", "walk", 5.15, "2.1,-2.3,1.4", "0.4,0.33,0.75"),
    ("feet", "biped14", "walk", 2.62, "0.75,-0.85,0.6", "0.14,0.12,0.12"),
)
"""Name, robot, scenario, time [s], position of the camera and its target [m]."""


def main() -> int:
    """Generate all images."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[entry[0] for entry in PICTURES], help="names of images")
    selected = parser.parse_args().only
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium: apt install chromium", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    for name, robot, scenario, time, eye, target in PICTURES:
        if name not in selected:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "run.npz"
            recording, _ = run(RunConfig(robot=robot, scenario=scenario, duration=time + 1.5))
            recording.save(path)
            page, replay = open_replay(read_shown(path), port=0)
        replay.go(time)
        page.scene.layers["cones"].switch(name == "feet")
        replay.go(time)
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=ARGUMENTS)
            tab = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            tab.goto(f"{page.address}/?initialCameraPosition={eye}&initialCameraLookAt={target}", wait_until="commit")
            tab.wait_for_timeout(1e3 * SETTLED)
            for close in tab.locator(".mantine-Notification-closeButton").all():
                # A mouse click would wait for the image to stop changing.
                close.dispatch_event("click")
            tab.wait_for_timeout(2e3)
            data = tab.screenshot(timeout=120e3)
            chromium.close()
        page.close()
        Image.open(io.BytesIO(data)).convert("RGB").save(FOLDER / f"{name}.webp", quality=88, method=6)
        print(f"wrote {FOLDER / name}.webp: {(FOLDER / f'{name}.webp').stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
