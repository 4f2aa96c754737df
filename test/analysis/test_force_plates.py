"""Metrics of plates: contacts, means, impulses and loading rates of known forces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from bipedsim.analysis import contacts, filtered, load_plates, plate_figures, plate_table, running_mean, sum_of_plates
from bipedsim.cli.main import main
from bipedsim.config import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import PlateConfig, PlateSignals
from bipedsim.recording import export_csv
from bipedsim.recording.lab import is_trial
from bipedsim.runs import run


def pressed(
    force: Array, at: tuple[float, float], name: str = "one", x: float = 0.0, rate: float = 1000.0
) -> PlateSignals:
    """Return the channels of a plate under vertical and forward forces (n, 2) at a point in the world frame."""
    g = PlateConfig(name=name, size=(0.6, 0.4), position=(x, 0.0, 0.0), thickness=0.05, rate=rate).geometry()
    f = np.column_stack([force[:, 1], np.zeros(len(force)), force[:, 0]])
    m = np.cross(np.array([*at, 0.0]) - g.transducer_origin, f)
    R = g.rotation
    return PlateSignals(np.arange(len(f)) / rate, g, g.channels(np.hstack([f @ R, m @ R])))


def test_a_contact_has_the_figures_of_its_force() -> None:
    """Half a sine of 600 N over 0.5 s, and a ramp: closed forms."""
    t = np.arange(2000) / 1000.0
    up = np.where((t > 0.2) & (t < 0.7), 600.0 * np.sin(np.pi * (t - 0.2) / 0.5), 0.0)
    up += np.where((t >= 1.0) & (t < 1.5), np.minimum(500.0, 5000.0 * (t - 1.0)), 0.0)
    one = pressed(np.column_stack([up, 0.1 * up]), (0.1, 0.05))
    figures = plate_figures({"one": one}, weight=500.0)["one"]["contacts"]
    assert [round(f["start_s"], 2) for f in figures] == [0.21, 1.0]
    assert figures[0]["duration_s"] == pytest.approx(0.5 - 2 * 0.5 / np.pi * np.arcsin(20 / 600), abs=2e-3)
    assert figures[0]["peak_N"] == pytest.approx(600.0, rel=1e-4)
    assert figures[0]["peak_over_mg"] == pytest.approx(1.2, rel=1e-4)
    # Over 20 ms the top of a sine loses (pi d / T)^2 / 24.
    assert figures[0]["peak_20ms_N"] == pytest.approx(600.0 * (1.0 - (np.pi * 0.02 / 0.5) ** 2 / 24.0), rel=1e-4)
    assert figures[0]["impulse_Ns"][2] == pytest.approx(600.0 * 0.5 * 2.0 / np.pi, rel=2e-3)
    assert figures[0]["impulse_Ns"][0] == pytest.approx(0.1 * figures[0]["impulse_Ns"][2])
    assert figures[1]["loading_rate_N_per_s"] == pytest.approx(5000.0, rel=0.02)
    assert figures[0]["cop_path_m"] < 1e-9
    lines = plate_table(plate_figures({"one": one}, weight=500.0))
    assert len(lines) == 4
    assert "unloaded" in plate_table(plate_figures({"two": pressed(np.zeros((9, 2)), (0, 0))}))[1]


def test_gaps_that_are_short_are_bridged() -> None:
    up = np.full(1000, 300.0)
    up[300:310] = 0.0
    up[600:700] = 0.0
    up[650:655] = 300.0
    one = pressed(np.column_stack([up, up]), (0.0, 0.0))
    assert [(s.start, s.stop) for s in contacts(one)] == [(0, 600), (700, 1000)]


def test_the_sum_is_that_of_the_whole() -> None:
    """Two feet on two plates of other rates: their CoP is the mean weighted by force."""
    left = pressed(np.tile([200.0, 10.0], (1000, 1)), (-0.2, 0.1))
    right = pressed(np.tile([400.0, -10.0], (500, 1)), (0.7, -0.1), "two", 0.6, 500.0)
    total = sum_of_plates([left, right])
    assert len(total.t) == 500
    np.testing.assert_allclose(total.force[7], [0.0, 0.0, 600.0], atol=1e-9)
    np.testing.assert_allclose(total.cop[7], [0.4, -0.1 / 3.0], atol=1e-9)
    # A couple of 10 N, 0.2 m apart.
    np.testing.assert_allclose(total.free_moment[7], -2.0, atol=1e-9)
    with refusal(place="force plates"):
        sum_of_plates([])


def test_filtering_leaves_what_is_slow() -> None:
    t = np.arange(4000) / 1000.0
    up = 500.0 + 100.0 * np.sin(2.0 * np.pi * 2.0 * t) + 100.0 * np.sin(2.0 * np.pi * 200.0 * t)
    one = filtered(pressed(np.column_stack([up, 0.0 * up]), (0.1, 0.0)), 20.0)
    middle = slice(500, 3500)
    np.testing.assert_allclose(
        one.normal_force()[middle], 500.0 + 100.0 * np.sin(2.0 * np.pi * 2.0 * t[middle]), atol=0.05
    )
    np.testing.assert_allclose(one.cop()[middle, 0], 0.1, atol=1e-9)
    np.testing.assert_allclose(running_mean(up, 1000.0, 0.005)[5], up[3:8].mean())


def test_the_command_draws_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "stand.yaml"
    scenario.write_text(
        "controller: posture\nforce_plates:\n  - {name: a, size: [0.5, 0.6], position: [-0.2, 0, 0]}\n"
        "  - {name: b, size: [0.5, 0.6], position: [0.3, 0, 0]}\n"
    )
    recording, _ = run(RunConfig(scenario=str(scenario), duration=0.2))
    recording.save(tmp_path / "run.npz")
    assert main(["plates", str(tmp_path / "run.npz"), "--filter", "50"]) == 0
    assert (tmp_path / "run_plates.png").stat().st_size > 20_000
    said = capsys.readouterr().out
    assert said.splitlines()[1].startswith("a ")
    assert "sum" in said
    assert load_plates(tmp_path / "run.npz").weight == pytest.approx(recording.weight)
    recording.force_plates = {}
    recording.save(tmp_path / "none.npz")
    with refusal(RecordingError, place=tmp_path / "none.npz"):
        load_plates(tmp_path / "none.npz")
    # A table of this run is no table of a laboratory, whose columns would be wrenches of plates.
    export_csv(recording, tmp_path / "none.csv")
    with refusal(RecordingError, place=tmp_path / "none.csv"):
        load_plates(tmp_path / "none.csv")
    assert main(["plates"]) == 2
    assert "--grid" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "first", "trial"),
    [
        ("lab.csv", "t[s],Fx1[N],Fy1[N],Fz1[N]", True),
        ("lab.csv", "t[s],plate_ax[m],plate_ay[m],foot_Fz[N]", True),
        ("lab.CSV", "Time[s],left_foot_wrench_fz[N]", True),
        ("run.csv", "\ufefft[s],left_foot_wrench_fz[N]", False),
        ("run.csv", "l_knee_joint_position[rad], t[s] ", False),
        ("lab.txt", "t[s],left_foot_wrench_fz[N]", True),
    ],
)
def test_a_table_with_columns_of_a_run_is_a_run(name: str, first: str, trial: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"{first}\n0,0\n")
    assert is_trial(tmp_path / name) == trial
