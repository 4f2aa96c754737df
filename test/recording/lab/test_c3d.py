"""C3D files: third-party readers read the written files, and errors of input files are reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab_support import RATE, N, a_plate
from refusals import check_fields, refusal

from bipedsim.errors import RecordingError
from bipedsim.plates import CHANNELS, PlateGeometry, PlateSignals
from bipedsim.recording.lab import Event, LabTrial, Markers, one_clock, read_c3d, read_trial, write_c3d

ezc3d = pytest.importorskip("ezc3d", reason="the extra lab: pip install 'bipedsim[lab]'")

FLOAT = 2.0**-24
"""Relative rounding error of a 32-bit float: half a unit in its last place."""


def quantised(plate: PlateSignals) -> PlateSignals:
    """The plate after rounding as in a file: 32-bit floats of newtons and millimetres."""
    g = plate.geometry
    scale = {1: [1, 1, 1, 1e3, 1e3, 1e3], 2: [1, 1, 1, 1e3, 1e3, 1e3], 3: [1] * 8, 4: [1] * 6}[g.kind] * np.ones(1)
    rows = np.array([1.0, 1.0, 1.0, 1e3, 1e3, 1e3])[:, None]

    def single(values: Any, unit: Any) -> Any:
        return (np.asarray(values) * unit).astype(np.float32).astype(float) / unit

    geometry = replace(
        g,
        corners=single(g.corners, 1e3),
        offset=single(g.offset, 1e3),
        half_base=single(g.half_base, 1e3),
        calibration=single(g.calibration, rows),
    )
    return replace(plate, geometry=geometry, channels=single(plate.channels, scale))


def a_trial(*plates: PlateSignals) -> LabTrial:
    """A trial with two markers. One is not visible for a while."""
    t = 0.25 + np.arange(0, N, 4) / RATE
    positions = np.stack([np.column_stack([t, 2.0 * t, np.ones_like(t)]), np.column_stack([-t, t, t])], axis=1)
    positions[10:20, 1] = np.nan
    events = (Event(0.30, "Foot Strike", "Left"), Event(0.50, "Foot Off", "Right"))
    return LabTrial("walk", plates, Markers(t, ("CoM", "left_sole_0"), positions), events)


@pytest.mark.parametrize("kind", sorted(CHANNELS))
def test_ezc3d_finds_forces_cop_and_free_moment_of_every_type(kind: int, tmp_path: Path) -> None:
    """The tolerances are 1e-4 N, 1e-5 mm and 1e-5 N.mm, relative to the 32-bit floats of the file."""
    plate = a_plate(kind)
    assert write_c3d(a_trial(plate), tmp_path / "trial.c3d", {"filter": "none"}) == ()
    file = ezc3d.c3d(str(tmp_path / "trial.c3d"), extract_forceplat_data=True)
    found = file["data"]["platform"][0]
    assert found["unit_force"] == "N"
    assert found["unit_position"] == "mm"
    plate = quantised(plate)
    loaded = plate.normal_force() > 30.0
    assert loaded.sum() > 200
    np.testing.assert_allclose(found["force"].T, plate.force(), atol=1e-4)
    np.testing.assert_allclose(found["center_of_pressure"].T[loaded], 1e3 * plate.cop(0.0)[loaded], atol=1e-5)
    np.testing.assert_allclose(found["Tz"].T[loaded, 2], 1e3 * plate.free_moment(0.0)[loaded], atol=1e-5)
    # Raw Fz is negative under load: the reaction along a z that looks into the floor.
    if kind == 2:
        assert file["data"]["analogs"][0, 2].min() < -600.0
    for name in ("USED", "TYPE", "ZERO", "CHANNEL"):
        assert file["parameters"]["FORCE_PLATFORM"][name]["type"] == 2
    assert file["parameters"]["FORCE_PLATFORM"]["ORIGIN"]["value"][2, 0] < 0.0


@pytest.mark.parametrize("kind", sorted(CHANNELS))
@pytest.mark.parametrize("on", ["person", "plate"])
def test_our_reader_takes_back_what_was_written(kind: int, on: str, tmp_path: Path) -> None:
    plate = a_plate(kind, on=on)
    trial = a_trial(plate)
    write_c3d(trial, tmp_path / "trial.c3d")
    back = read_c3d(tmp_path / "trial.c3d")
    one = back.plates[0]
    np.testing.assert_allclose(one.force(), plate.force(), atol=1e-4 + 4e3 * FLOAT)
    loaded = plate.normal_force() > 50.0
    np.testing.assert_allclose(one.cop(0.0)[loaded], plate.cop(0.0)[loaded], atol=1e-6)
    np.testing.assert_allclose(one.free_moment(0.0)[loaded], plate.free_moment(0.0)[loaded], atol=1e-4)
    assert back.notes == ()
    np.testing.assert_allclose(back.markers.positions, trial.markers.positions, rtol=2.0 * FLOAT, atol=1e-7)
    assert back.markers.names == trial.markers.names
    assert [(event.label, event.context) for event in back.events] == [("Foot Strike", "Left"), ("Foot Off", "Right")]
    # Time 0 of the file is the first sample.
    np.testing.assert_allclose([event.t for event in back.events], [0.05, 0.25], atol=1e-6)


def test_the_package_c3d_reads_channels_and_markers(tmp_path: Path) -> None:
    c3d = pytest.importorskip("c3d")
    plates = a_plate(2, "left"), a_plate(2, "right", 1)
    trial = a_trial(*plates)
    write_c3d(trial, tmp_path / "trial.c3d")
    with (tmp_path / "trial.c3d").open("rb") as file:
        reader = c3d.Reader(file)
        assert (reader.point_rate, reader.analog_rate) == (250.0, 1000.0)
        assert [label.strip() for label in reader.point_labels] == ["CoM", "left_sole_0"]
        assert [label.strip() for label in reader.analog_labels][:3] == ["Fx_1", "Fy_1", "Fz_1"]
        frames = [(points.copy(), analog.copy()) for _, points, analog in reader.read_frames()]
    channels = np.hstack([analog for _, analog in frames]).T
    wanted = np.hstack([plate.channels * np.array([1.0, 1.0, 1.0, 1e3, 1e3, 1e3]) for plate in plates])
    np.testing.assert_allclose(channels, wanted, rtol=2.0 * FLOAT, atol=1e-6)
    points = np.stack([points for points, _ in frames])
    np.testing.assert_allclose(points[:, 0, :3], 1e3 * trial.markers.positions[:, 0], rtol=2.0 * FLOAT)
    assert (points[10:20, 1, 3] < 0.0).all()


def test_plates_of_several_clocks_are_brought_to_one() -> None:
    fast, slow = a_plate(2), a_plate(2, "2", 1)
    slow = PlateSignals(slow.t[::4], PlateGeometry("2", slow.geometry.corners, 2, RATE / 4), slow.channels[::4])
    both, notes = one_clock([fast, slow])
    assert len(notes) == 1
    np.testing.assert_array_equal(both[0].t, both[1].t)
    np.testing.assert_allclose(both[1].channels[::4], slow.channels[: len(both[1].t[::4])], atol=1e-9)


def edited(path: Path, edit: Callable[[Any], None]) -> Path:
    """Write a file of two plates, modified by third-party software; return its path."""
    write_c3d(a_trial(a_plate(2), a_plate(2, "2", 1)), path)
    file = ezc3d.c3d(str(path))
    edit(file)
    for name in ("USED", "TYPE", "ZERO", "CHANNEL"):
        if name in file["parameters"].get("FORCE_PLATFORM", {}):
            file["parameters"]["FORCE_PLATFORM"][name]["type"] = 2
    file["data"]["meta_points"]["residuals"] = np.zeros((1, *file["data"]["points"].shape[1:]))
    file.write(str(path))
    return path


def test_frames_without_a_load_are_zero(tmp_path: Path) -> None:
    """Both plates of a file read 7 N too much. One is unloaded in the frames that the file names, the other is not."""
    samples: list[Any] = []

    def edit(file: Any) -> None:
        file["parameters"]["FORCE_PLATFORM"]["ZERO"]["value"] = np.array([2, 5])
        analogs = file["data"]["analogs"][0]
        each = round(file["header"]["analogs"]["frame_rate"] / file["header"]["points"]["frame_rate"])
        analogs[:6, : 6 * each] = 0.0
        analogs[6:12, : 6 * each] = 0.0
        analogs[8, : 6 * each] = -400.0
        samples.append(analogs.copy())
        analogs[[2, 8]] += 7.0

    trial = read_trial(edited(tmp_path / "offset.c3d", edit))
    one, other = trial.plates
    np.testing.assert_allclose(one.channels[:, 2], samples[0][2], atol=1e-3)
    np.testing.assert_allclose(other.channels[:, 2], samples[0][8] + 7.0, atol=1e-3)
    off = "force plate 1: the mean of the frames of FORCE_PLATFORM:ZERO was taken off, 7 N"
    assert any(off in note for note in trial.notes)
    assert any("force plate 2: FORCE_PLATFORM:ZERO is not taken off" in note for note in trial.notes)


def set_value(group: str, name: str, value: Any) -> Callable[[Any], None]:
    def edit(file: Any) -> None:
        file["parameters"][group][name]["value"] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "place", "value"),
    [
        (
            set_value("FORCE_PLATFORM", "USED", np.array([0])),
            "FORCE_PLATFORM:USED",
            None,
        ),
        (set_value("FORCE_PLATFORM", "TYPE", np.array([2, 9])), "force plate 2: type", 9),
        (set_value("POINT", "UNITS", ["furlong"]), "POINT:UNITS: unit", "furlong"),
        (set_value("ANALOG", "UNITS", ["N", "N", "V"] + ["Nmm"] * 9), "unit of Fz: unit", "V"),
        (
            set_value("ANALOG", "UNITS", ["N", "N", "N"] + ["Nmm", "Hz", "Nmm"] * 3),
            "unit of My: unit",
            "Hz",
        ),
        (
            set_value("FORCE_PLATFORM", "CHANNEL", np.array([[1, 7], [2, 8], [3, 9], [4, 10], [5, 11], [6, 40]])),
            "force plate 2: FORCE_PLATFORM:CHANNEL",
            [7, 8, 9, 10, 11, 40],
        ),
    ],
)
def test_what_a_file_lacks_is_named_with_what_was_found(
    edit: Callable[[Any], None], place: str, value: Any, tmp_path: Path
) -> None:
    with pytest.raises(RecordingError) as caught:
        read_trial(edited(tmp_path / "trial.c3d", edit))
    check_fields((caught.value.faults or (caught.value,))[0], place=place, value=value)


@pytest.mark.parametrize(
    ("unit", "moment", "scale"), [("m", "N.m", 1e-3), ("cm", "N*cm", 0.1), ("in", "lbf.in", 1 / 25.4)]
)
def test_other_units_are_converted(unit: str, moment: str, scale: float, tmp_path: Path) -> None:
    force = 1.0 / 4.4482216152605 if moment.startswith("lbf") else 1.0

    def edit(file: Any) -> None:
        parameters = file["parameters"]
        parameters["POINT"]["UNITS"]["value"] = [unit]
        for name in ("CORNERS", "ORIGIN"):
            parameters["FORCE_PLATFORM"][name]["value"] = parameters["FORCE_PLATFORM"][name]["value"] * scale
        parameters["ANALOG"]["UNITS"]["value"] = (["lbf" if force != 1.0 else "N"] * 3 + [moment] * 3) * 2
        file["data"]["analogs"] = file["data"]["analogs"] * np.tile([force] * 3 + [force * scale] * 3, 2)[None, :, None]
        file["data"]["points"][:3] *= scale

    back = read_trial(edited(tmp_path / "trial.c3d", edit))
    plate = a_plate(2)
    np.testing.assert_allclose(back.plates[0].force(), plate.force(), atol=1e-3)
    loaded = plate.normal_force() > 50.0
    np.testing.assert_allclose(back.plates[0].cop()[loaded], plate.cop()[loaded], atol=2e-6)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_laboratory_whose_vertical_is_not_z_is_turned(axis: str, tmp_path: Path) -> None:
    """The vertical is normal to the plates. A standing person is upright afterwards."""
    turn = {
        "x": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        "y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    }

    def edit(file: Any) -> None:
        corners = file["parameters"]["FORCE_PLATFORM"]["CORNERS"]
        corners["value"] = np.einsum("ij,jkl->ikl", turn[axis], corners["value"])

    back = read_trial(edited(tmp_path / "trial.c3d", edit))
    assert any("taken for up" in note for note in back.notes)
    np.testing.assert_allclose(back.plates[0].force(), a_plate(2).force(), atol=1e-3)


def test_signs_that_break_the_standard_are_mended_and_said(tmp_path: Path) -> None:
    def edit(file: Any) -> None:
        file["parameters"]["FORCE_PLATFORM"]["ORIGIN"]["value"][:, 0] *= -1.0
        file["data"]["analogs"][0, 6:] *= -1.0

    back = read_trial(edited(tmp_path / "trial.c3d", edit))
    assert len(back.notes) == 2
    for one, plate in zip(back.plates, (a_plate(2), a_plate(2, "2", 1)), strict=True):
        np.testing.assert_allclose(one.force(), plate.force(), atol=1e-3)
        loaded = plate.normal_force() > 50.0
        np.testing.assert_allclose(one.cop()[loaded], plate.cop()[loaded], atol=2e-6)


def test_transducers_with_z_up_are_read_as_stated_with_a_note(tmp_path: Path) -> None:
    """Kistler's z points down; BioWare's own CoP shows that its files with z up hold channels with z down."""
    plate = a_plate(3)
    up = replace(plate.geometry, corners=plate.geometry.corners[[3, 2, 1, 0]], offset=np.array([0.0, 0.0, 0.04]))
    plate = replace(plate, geometry=up, channels=up.channels(np.tile([30.0, 40.0, 500.0, 0.0, 0.0, 0.0], (N, 1))))
    write_c3d(a_trial(plate), tmp_path / "trial.c3d")
    back = read_c3d(tmp_path / "trial.c3d")
    np.testing.assert_allclose(back.plates[0].force(), plate.force(), atol=1e-3)
    (note,) = back.notes
    # Twice the depth of the transducers times 50 N over 500 N.
    assert "8 mm" in note


def test_plates_across_no_axis_have_no_vertical(tmp_path: Path) -> None:
    c, s = np.cos(0.6), np.sin(0.6)
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])

    def edit(file: Any) -> None:
        corners = file["parameters"]["FORCE_PLATFORM"]["CORNERS"]
        corners["value"] = np.einsum("ij,jkl->ikl", tilt, corners["value"])

    with refusal(RecordingError, place=f"{tmp_path / 'trial.c3d'}: vertical"):
        read_trial(edited(tmp_path / "trial.c3d", edit))


def test_damaged_files_and_files_of_others_are_told(tmp_path: Path) -> None:
    path = tmp_path / "trial.c3d"
    write_c3d(a_trial(a_plate(2)), path)
    whole = path.read_bytes()
    cut = whole[: len(whole) * 2 // 3]
    for data, place in ((b"", path), (b"\x00" * 2000, path), (cut, f"{path}: POINT:FRAMES")):
        path.write_bytes(data)
        with refusal(RecordingError, place=place):
            read_trial(path)
    with refusal(RecordingError, place=tmp_path / "other.c3d"):
        read_trial(tmp_path / "other.c3d")
    (tmp_path / "trial.doc").write_text("")
    with refusal(RecordingError, place=tmp_path / "trial.doc"):
        read_trial(tmp_path / "trial.doc")


def test_what_does_not_fit_a_c3d_file_is_refused(tmp_path: Path) -> None:
    with refusal(place=tmp_path / "a.c3d"):
        write_c3d(LabTrial("empty", ()), tmp_path / "a.c3d")
    with refusal(place=tmp_path / "a.txt"):
        write_c3d(a_trial(a_plate(2)), tmp_path / "a.txt")


def test_a_name_that_is_longer_than_a_text_is_refused(tmp_path: Path) -> None:
    t = np.arange(10) / 100.0
    markers = Markers(t, ("ä" * 128,), np.zeros((10, 1, 3)))
    with refusal(place="POINT:LABELS", value="ä" * 128):
        write_c3d(LabTrial("walk", (), markers), tmp_path / "trial.c3d")


def test_texts_are_counted_in_bytes_and_none_is_cut(tmp_path: Path) -> None:
    """255 of them are the most that one text has; a longer one goes on in the next."""
    texts = {"filter": "ä" * 150, "robot": "ø" * 700, "controller": "word " * 200, "lines": "one\ntwo"}
    write_c3d(a_trial(a_plate(2)), tmp_path / "trial.c3d", texts)
    found = ezc3d.c3d(str(tmp_path / "trial.c3d"))["parameters"]["BIPEDSIM"]
    for name, text in texts.items():
        lines = found[name.upper()]["value"]
        assert all(len(line.encode()) <= 255 for line in lines)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "").replace("\n", "")
    assert read_c3d(tmp_path / "trial.c3d").plates[0].force().shape == (N, 3)


@pytest.mark.parametrize("rate", [999.0, 333.333333, 1001.3, 1798.2, 23.976])
def test_samples_are_where_they_were_at_any_rate(rate: float, tmp_path: Path) -> None:
    """Rates are 32-bit floats in the file, and their ratio is not an integer. The ratio in the header counts."""
    plate = a_plate(2)
    t = np.arange(N) / rate
    plate = PlateSignals(t, replace(plate.geometry, rate=rate), plate.channels)
    write_c3d(LabTrial("walk", (plate,)), tmp_path / "trial.c3d")
    one = read_c3d(tmp_path / "trial.c3d").plates[0]
    np.testing.assert_allclose(one.force(), plate.force()[: len(one)], atol=1e-4 + 4e3 * FLOAT)
    np.testing.assert_allclose(one.t, t[: len(one)], rtol=1e-6)
    assert N - len(one) < 8


def test_a_long_run_has_more_frames_than_a_word_counts(tmp_path: Path) -> None:
    """Nearly five minutes at 250 Hz are 70 000; ezc3d finds them all."""
    t = np.arange(70_000) / 250.0
    positions = np.column_stack([np.sin(t), np.cos(t), t])[:, None]
    trial = LabTrial("long", (a_long_plate(t),), Markers(t, ("CoM",), positions))
    assert write_c3d(trial, tmp_path / "trial.c3d") == ()
    back = read_c3d(tmp_path / "trial.c3d")
    assert len(back.markers.t) == len(back.plates[0]) == 70_000
    np.testing.assert_allclose(back.markers.positions, positions, rtol=2.0 * FLOAT, atol=1e-7)
    found = ezc3d.c3d(str(tmp_path / "trial.c3d"))["data"]
    np.testing.assert_allclose(found["points"][:3, 0].T[:70_000], 1e3 * positions[:, 0], rtol=2.0 * FLOAT, atol=1e-4)


def a_long_plate(t: Any) -> PlateSignals:
    geometry = replace(a_plate(2).geometry, rate=250.0)
    return PlateSignals(t, geometry, np.tile([1.0, 2.0, -700.0, 4.0, 5.0, 6.0], (len(t), 1)))


def test_more_markers_than_a_dimension_counts(tmp_path: Path) -> None:
    t = np.arange(20) / 100.0
    names = tuple(f"marker_{k}" for k in range(300))
    positions = np.broadcast_to(np.arange(300.0)[None, :, None], (20, 300, 3))
    plate = PlateSignals(t, replace(a_plate(2).geometry, rate=100.0), np.zeros((20, 6)))
    write_c3d(LabTrial("many", (plate,), Markers(t, names, positions)), tmp_path / "trial.c3d")
    back = read_c3d(tmp_path / "trial.c3d").markers
    assert back.names == names
    np.testing.assert_allclose(back.positions, positions, rtol=2.0 * FLOAT)
    found = ezc3d.c3d(str(tmp_path / "trial.c3d"))
    assert found["data"]["points"].shape == (4, 300, 20)
    assert len(found["parameters"]["POINT"]["LABELS2"]["value"]) == 45
