"""The data of a file next to its player: the values of every frame, to the displayed digits."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from bipedsim.config import RunConfig
from bipedsim.runs import run
from bipedsim.view.page import read_shown, write_html
from bipedsim.view.page.beside import quantised


def decoded(steps: np.ndarray, ranges: list[list[float]]) -> np.ndarray:
    """Return the numbers (F, C) of a file, as its script reads them."""
    summed = np.cumsum(steps.astype(np.int64), axis=1).astype(np.int16).T.astype(np.float64)
    low, size = np.array(ranges).T
    return np.where(summed == -32768, np.nan, low + size * (summed + 32767) / 65534)


def test_numbers_are_kept_to_a_step_of_their_range() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(50, 6)) * [1e-3, 1.0, 1e3, 1.0, 1.0, 0.0] + [0, 0, 0, 0, 0, 7.5]
    values[:10, 3] = np.nan
    values[20:30, 3] = np.nan
    values[:, 4] = np.nan
    found = decoded(*quantised(values))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(values))
    size = np.nan_to_num(np.nanmax(values[:, [0, 1, 2, 3, 5]], axis=0) - np.nanmin(values[:, [0, 1, 2, 3, 5]], axis=0))
    assert (np.nanmax(np.abs(found - values)[:, [0, 1, 2, 3, 5]], axis=0) <= size / 65534 + 1e-12).all()


def test_a_file_holds_the_figures_of_every_frame(tmp_path: Path) -> None:
    recording, _ = run(RunConfig(duration=0.5))
    recording.save(tmp_path / "stand.npz")
    shown = read_shown(tmp_path / "stand.npz")
    write_html(shown, tmp_path / "stand.html")
    text = (tmp_path / "stand.html").read_text(encoding="utf-8")
    (held,) = re.findall(r'id="bipedsim-data">([^<]*)<', text)
    whole = zlib.decompress(base64.b64decode(held))
    size = int.from_bytes(whole[:4], "little")
    head = json.loads(whole[4 : 4 + size])
    frames, robot = shown.frames, shown.robot
    assert head["t"] == pytest.approx(frames.t.tolist(), abs=1e-6)
    assert np.diff(head["at"]) == pytest.approx(np.diff(frames.t), abs=2e-6)
    steps = np.frombuffer(whole[4 + size + size % 2 :], dtype="<i2").reshape(-1, len(frames))
    values = decoded(steps, head["ranges"])
    force = [head["names"].index(name) for name in head["plots"][0]]
    instant = frames.instant(3)
    assert instant.wrench is not None
    np.testing.assert_allclose(values[3, force], instant.wrench[:, 2], atol=0.01)
    assert f"t = {instant.t:.3f} s" in head["now"][3]
    # The text of each row, with its numbers inserted, equals that of the page.
    knee = robot.model.getJointId(robot.joint_names[3])
    rows = dict(next(rows for name, rows in head["bodies"].items() if f"/{knee}/look" in name))
    at, digits, factor, _ = rows["position"][0]
    assert instant.joint_position is not None
    assert factor * values[3, at] == pytest.approx(np.rad2deg(instant.joint_position[3]), abs=0.01)
    assert (digits, rows["joint"]) == (1, [robot.joint_names[3]])
