"""C3D files of a writer in the tests: laboratory data is read, or the error names the file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c3d_writer import HALF, TruePlate, bounds, c3d_bytes, random_case
from refusals import refusal

from bipedsim.errors import RecordingError
from bipedsim.recording.lab import LabTrial, read_trial

Groups = dict[str, dict[str, Any]]


def a_walk(kind: int, n: int) -> TruePlate:
    """A person of 700 N walks over a plate. In the first and last tenth the plate is empty."""
    s = np.linspace(-0.125, 1.125, n)
    load = np.where((s > 0.0) & (s < 1.0), 700.0 + 100.0 * np.cos(4.0 * np.pi * s), 0.0)
    return TruePlate(
        kind,
        np.array([0.5, 0.25]),
        0.25,
        np.array([0.5, 0.625]),
        np.array([0.0, 0.0, -0.0625]),
        np.array([0.125, 0.1875]),
        np.diag([500.0, 500.0, 1000.0, 300.0, 200.0, 100.0]),
        np.column_stack([0.1 * load * np.sin(6.0 * s), 0.03 * load, load]),
        np.column_stack([0.45 + 0.2 * s, 0.3 + 0.05 * np.sin(5.0 * s)]),
        0.004 * load,
    )


def a_file(
    path: Path,
    kind: int = 2,
    n: int = 60,
    ratio: int = 10,
    rate: float = 100.0,
    points: int = 0,
    edit: Callable[[Groups], None] = lambda _: None,
    late: Callable[[Groups], None] = lambda _: None,
    plate: TruePlate | None = None,
    added: Any = 0.0,
    **header: Any,
) -> TruePlate:
    """Write a file of floats with one plate in N and N.mm; return its true loads.

    ``edit`` changes parameters before they scale the samples, ``late`` afterwards. ``added`` is an additional signal of
    the channels.
    """
    plate = plate or a_walk(kind, n * ratio)
    units = {1: ["N"] * 3 + ["mm", "mm", "Nmm"], 2: ["N"] * 3 + ["Nmm"] * 3, 3: ["N"] * 8, 4: ["V"] * 6}[kind]
    scales = np.array([1e3 if "m" in unit else 1.0 for unit in units])
    analogs = plate.channels(np.random.default_rng(0)) * scales + added
    count = len(units)
    rows = np.array([1.0, 1.0, 1.0, 1e3, 1e3, 1e3])[:, None]
    groups: Groups = {
        "POINT": {
            "USED": points,
            "SCALE": -1.0,
            "FRAMES": min(n, 65535),
            "RATE": rate,
            "UNITS": "mm",
            "LABELS": ["M"] * points,
        },
        "ANALOG": {
            "USED": count,
            "LABELS": [f"C{k}" for k in range(count)],
            "UNITS": units,
            "GEN_SCALE": 1.0,
            "SCALE": np.ones(count),
            "OFFSET": np.zeros(count, dtype=int),
            "RATE": rate * ratio,
        },
        "FORCE_PLATFORM": {
            "USED": 1,
            "TYPE": np.array([kind]),
            "CORNERS": 1e3 * plate.corners.T[:, :, None],
            "ORIGIN": 1e3 * np.array([*plate.half, plate.origin[2]] if kind == 3 else plate.origin)[:, None],
            "CHANNEL": np.arange(1, count + 1)[:, None],
            "CAL_MATRIX": (rows * plate.calibration)[:, :, None],
        },
    }
    edit(groups)
    analogs = analogs / (groups["ANALOG"]["SCALE"] * groups["ANALOG"]["GEN_SCALE"]) + groups["ANALOG"]["OFFSET"]
    places = np.zeros((n, 4 * points))
    scale = groups["POINT"]["SCALE"]
    if scale > 0.0:
        analogs = np.rint(analogs)
    late(groups)
    words = {"points": points, "per_frame": count * ratio, "ratio": ratio, "rate": rate, "last": min(n, 65535)}
    frames = np.hstack([places, analogs.reshape(n, -1)])
    path.write_bytes(c3d_bytes(groups, frames, **({"scale": scale} | words | header)))
    return plate


def put(group: str, **values: Any) -> Callable[[Groups], None]:
    """An edit that sets parameters; None takes one out."""

    def edit(groups: Groups) -> None:
        rows = groups.setdefault(group, {})
        rows |= values
        for name in [name for name, value in values.items() if value is None]:
            del rows[name]

    return edit


def check(trial: LabTrial, plate: TruePlate, error: Any = None, number: int = 0) -> None:
    """Compare force, CoP and free moment of the plate of a trial with the truth, within the precision of a float."""
    one = trial.plates[number]
    assert len(one) == len(plate.force)
    if error is None:
        error = 4.0 * HALF * np.abs(plate.channels(np.random.default_rng(0))).max(axis=0)
    force, cop, twist = bounds(plate, error)
    loaded = plate.force[:, 2] > 100.0
    assert (np.abs(one.force() - plate.force) <= force).all()
    assert (np.linalg.norm(one.cop(0.0)[:, :2] - plate.cop, axis=1) <= cop)[loaded].all()
    assert (np.abs(one.free_moment(0.0) - plate.twist) <= twist)[loaded].all()


def test_any_mixture_of_rates_processors_scales_units_and_types_is_read_or_refused(tmp_path: Path) -> None:
    """The tolerance is the resolution of each file. benchmarks/c3d_files.py does more of them and compares with other
    readers.
    """
    refused = 0
    for seed in range(40):
        case = random_case(seed, tmp_path / "trial.c3d")
        if case.refused:
            with pytest.raises(RecordingError) as caught:
                read_trial(tmp_path / "trial.c3d")
            assert any(fault.value in case.refused for fault in caught.value.faults or (caught.value,))
            refused += 1
            continue
        trial = read_trial(tmp_path / "trial.c3d")
        assert len(trial.plates) == len(case.plates)
        for k, (plate, error) in enumerate(zip(case.plates, case.errors, strict=True)):
            check(trial, plate, error, k)
            np.testing.assert_allclose(np.diff(trial.plates[k].t), 1.0 / case.rate, rtol=1e-6)
        np.testing.assert_allclose([event.t for event in trial.events], case.events, atol=5e-4)
        np.testing.assert_allclose(trial.markers.positions, case.points, atol=1e-4)
    assert 0 < refused < 12


@pytest.mark.parametrize("points", [0, 5])
@pytest.mark.parametrize(
    ("rate", "ratio"),
    [(23.976, 10), (33.33, 30), (59.94, 20), (99.9, 10), (119.88, 10), (150.001, 20), (179.82, 5), (83.33, 12)],
)
def test_rates_whose_quotient_is_no_whole_number_in_floats(
    rate: float, ratio: int, points: int, tmp_path: Path
) -> None:
    plate = a_file(tmp_path / "trial.c3d", n=40, rate=rate, ratio=ratio, points=points)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    np.testing.assert_allclose(trial.plates[0].t, np.arange(40 * ratio) / (rate * ratio), rtol=1e-6)
    assert trial.notes == ()


@pytest.mark.parametrize(
    "edit", [put("POINT", RATE=0.0), put("POINT", RATE=None), put("ANALOG", RATE=0.0), put("ANALOG", RATE=None)]
)
def test_a_rate_that_is_not_given_follows_from_the_other(edit: Callable[[Groups], None], tmp_path: Path) -> None:
    plate = a_file(tmp_path / "trial.c3d", rate=59.94, late=edit)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    np.testing.assert_allclose(trial.plates[0].t[-1], 599 / 599.4, rtol=1e-6)


def test_without_any_rate_of_frames_the_samples_have_theirs(tmp_path: Path) -> None:
    groups = put("POINT", RATE=0.0)
    path = tmp_path / "trial.c3d"
    plate = a_file(path, edit=groups)
    raw = bytearray(path.read_bytes())
    raw[20:24] = bytes(4)
    path.write_bytes(raw)
    check(read_trial(path), plate)
    assert read_trial(path).plates[0].t[-1] == pytest.approx(0.599)


@pytest.mark.parametrize("form", ["UNSIGNED", None])
def test_unsigned_samples_about_32768_do_not_wrap(form: str | None, tmp_path: Path) -> None:
    """Also where the file does not say that they are; a note does."""
    scale = np.array([0.05, 0.05, 0.05, 20.0, 20.0, 20.0])
    offset = np.full(6, 32768)

    def edit(groups: Groups) -> None:
        groups["POINT"]["SCALE"] = 0.1
        groups["ANALOG"] |= {"SCALE": scale, "OFFSET": offset} | ({"FORMAT": form} if form else {})

    plate = a_file(tmp_path / "trial.c3d", edit=edit)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate, 0.5001 * scale * [1.0, 1.0, 1.0, 1e-3, 1e-3, 1e-3])
    assert len(trial.notes) == (0 if form else 1)


def fields(n: int) -> Any:
    return np.array([n % 65536, n // 65536])


@pytest.mark.parametrize(
    ("edit", "notes", "counted"),
    [
        (put("TRIAL", ACTUAL_START_FIELD=fields(1), ACTUAL_END_FIELD=fields(70_000)), 0, True),
        (put("POINT", LONG_FRAMES=70_000.0), 0, True),
        (put("POINT", FRAMES=70_000.0), 0, True),
        (put("POINT", FRAMES=70_000 - 65_536), 1, True),
        (put("POINT", FRAMES=65_535), 1, False),
    ],
)
def test_more_frames_than_a_word_counts(
    edit: Callable[[Groups], None], notes: int, counted: bool, tmp_path: Path
) -> None:
    """Whether the file counts them elsewhere, in a word that went round, or not at all."""
    plate = a_file(tmp_path / "trial.c3d", n=70_000, ratio=1, rate=1000.0, edit=edit)
    trial = read_trial(tmp_path / "trial.c3d")
    assert len(trial.notes) == notes
    # Zeros in the last block may be padding: without a count they are left out.
    n = len(trial.plates[0])
    assert n == 70_000 if counted else 70_000 - 512 // 24 <= n <= 70_000
    np.testing.assert_allclose(trial.plates[0].force(), plate.force[:n], atol=1e-3)


def test_a_long_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trial.c3d"
    a_file(path, n=70_000, ratio=1, rate=1000.0, edit=put("POINT", LONG_FRAMES=70_000.0))
    path.write_bytes(path.read_bytes()[: -4400 * 24])
    with refusal(RecordingError, place=f"{path}: POINT:LONG_FRAMES"):
        read_trial(path)


@pytest.mark.parametrize(
    ("late", "header", "place"),
    [
        (put("POINT", USED=3), {}, "POINT:USED"),
        (put("ANALOG", USED=5), {}, "ANALOG:USED"),
        (put("ANALOG", RATE=2000.0), {}, "times"),
        (put("ANALOG", RATE=np.nan), {}, "ANALOG:RATE"),
        (put("POINT", SCALE=0.1), {}, "POINT:SCALE"),
        (put("POINT", FRAMES=90), {"last": 90}, "POINT:FRAMES"),
        (put("ANALOG", SCALE=np.ones(5)), {}, "ANALOG:SCALE"),
        (put("FORCE_PLATFORM", TYPE=np.array([6])), {}, "force plate 1: type"),
        (put("FORCE_PLATFORM", CHANNEL=np.arange(2, 8)[:, None]), {}, "force plate 1: FORCE_PLATFORM:CHANNEL"),
        (put("ANALOG"), {"ratio": 7}, "header"),
        (put("ANALOG"), {"ratio": 30}, "ANALOG:USED"),
    ],
)
def test_counts_that_contradict_each_other_are_refused_by_name(
    late: Callable[[Groups], None], header: dict[str, Any], place: str, tmp_path: Path
) -> None:
    """Samples read at a wrong offset look like forces."""
    a_file(tmp_path / "trial.c3d", late=late)
    path = tmp_path / "trial.c3d"
    if "ratio" in header:
        raw = bytearray(path.read_bytes())
        raw[18:20] = struct.pack("<H", header["ratio"])
        path.write_bytes(raw)
    else:
        a_file(path, late=late, **header)
    with refusal(RecordingError, place=f"{path}: {place}"):
        read_trial(path)


@pytest.mark.parametrize("ratio", [3, 7])
def test_a_header_that_counts_channels_instead_of_values_is_read(ratio: int, tmp_path: Path) -> None:
    """With 3 samples a frame, the six values could also be two channels; ANALOG:USED decides."""
    plate = a_file(tmp_path / "trial.c3d", ratio=ratio, per_frame=6)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    assert len(trial.notes) == 1


def test_what_is_wrong_with_each_plate_is_said_at_once(tmp_path: Path) -> None:
    """Of three plates the first has a type, the second a unit and the third corners that do not exist."""

    def late(groups: Groups) -> None:
        platform = groups["FORCE_PLATFORM"]
        platform |= {"USED": 3, "TYPE": np.array([21, 2, 4])}
        for name in ("CORNERS", "ORIGIN", "CHANNEL", "CAL_MATRIX"):
            platform[name] = np.concatenate([platform[name]] * 3, axis=-1)
        platform["CORNERS"][:, :, 2] = np.random.default_rng(0).normal(size=(3, 4)) * 1e12
        groups["ANALOG"]["UNITS"] = ["furlong"] * 6

    a_file(tmp_path / "trial.c3d", late=late)
    with pytest.raises(RecordingError) as error:
        read_trial(tmp_path / "trial.c3d")
    (kind, unit, corners) = error.value.faults
    assert (kind.value, unit.value, corners.place.rpartition(": ")[2]) == (21, "furlong", "corners")


def test_frames_that_no_count_names_are_said(tmp_path: Path) -> None:
    """For example, a program that cuts a file may leave frames behind its end."""
    plate = a_file(tmp_path / "trial.c3d", late=put("POINT", FRAMES=50), last=50)
    trial = read_trial(tmp_path / "trial.c3d")
    np.testing.assert_allclose(trial.plates[0].force(), plate.force[:500], atol=1e-3)
    assert len(trial.notes) == 1
    a_file(tmp_path / "trial.c3d", late=put("POINT", FRAMES=50))
    (note,) = read_trial(tmp_path / "trial.c3d").notes
    assert "50" in note
    assert "60" in note


def test_the_last_parameter_may_name_one_that_is_not_there(tmp_path: Path) -> None:
    """In SGI's samples of c3d.org, the bytes of the last offset are in the wrong order."""
    path = tmp_path / "trial.c3d"
    plate = a_file(path, edit=put("LAST", ONE=1), processor="sgi")
    raw = path.read_bytes()
    at = raw.index(b"\x03\x04ONE") + 5
    path.write_bytes(raw[:at] + raw[at : at + 2][::-1] + raw[at + 2 :])
    trial = read_trial(path)
    check(trial, plate)
    assert len(trial.notes) == 1


@pytest.mark.parametrize("first", [1, 400, 40_000, 65_000, 70_000])
def test_a_file_that_was_cut_has_its_events_and_its_zero_where_they_were(first: int, tmp_path: Path) -> None:
    """Both count from frame 1 of the whole trial; the first frame here is another, also beyond 32767 and 65535."""
    at = np.array([0.1, 0.45]) + (first - 1) / 100.0

    def edit(groups: Groups) -> None:
        zero = [first + 1, first + 3]
        groups["FORCE_PLATFORM"]["ZERO"] = np.array(zero) if zero[1] < 65536 else np.array(zero, dtype=float)
        groups["EVENT"] = {
            "USED": 2,
            "LABELS": ["Foot Strike", "Foot Off"],
            "CONTEXTS": ["Left", "Left"],
            "TIMES": np.stack([at // 60.0, at % 60.0]),
        }
        if first > 1000:
            groups["TRIAL"] = {"ACTUAL_START_FIELD": fields(first), "ACTUAL_END_FIELD": fields(first + 59)}
        # A plate with an offset of 7 N at any load.
        groups["ANALOG"]["OFFSET"] = np.array([0, 0, -7, 0, 0, 0])

    plate = a_file(
        tmp_path / "trial.c3d", edit=edit, late=put("ANALOG", OFFSET=np.zeros(6, dtype=int)), first=first % 65536
    )
    trial = read_trial(tmp_path / "trial.c3d")
    np.testing.assert_allclose([event.t for event in trial.events], [0.1, 0.45], atol=1e-5)
    np.testing.assert_allclose(trial.plates[0].force(), plate.force, atol=1e-3)
    assert len(trial.notes) == 1


def test_a_zero_is_the_mean_from_its_first_to_its_last_frame(tmp_path: Path) -> None:
    """Frames 402 to 404 of a file that begins with frame 400; the readings rise, so that each frame counts."""
    rising = np.outer(np.minimum(np.arange(600.0) // 10, 5.0), [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    zero = put("FORCE_PLATFORM", ZERO=np.array([402, 404]))
    plate = a_file(tmp_path / "trial.c3d", edit=zero, added=rising, first=400, last=459)
    found = read_trial(tmp_path / "trial.c3d").plates[0].channels[:, 2]
    np.testing.assert_allclose(found, plate.wrench()[:, 2] + rising[:, 2] - 3.0, atol=1e-3)


@pytest.mark.parametrize("zero", [(1, 5), (395, 402), (455, 470)])
def test_a_zero_that_was_cut_off_is_not_taken_from_other_frames(zero: tuple[int, int], tmp_path: Path) -> None:
    """Frames 400 to 459 are in the file."""
    plate = a_file(tmp_path / "trial.c3d", edit=put("FORCE_PLATFORM", ZERO=np.array(zero)), first=400, last=459)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    (note,) = trial.notes
    assert f"{zero[0]} to {zero[1]}" in note


@pytest.mark.parametrize("off", [5e-4, 2e-3, 5e-3, 8e-3])
def test_corners_that_were_measured_are_those_of_the_best_rectangle(off: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)

    def late(groups: Groups) -> None:
        groups["FORCE_PLATFORM"]["CORNERS"] += 1e3 * rng.uniform(-off, off, (3, 4, 1)) / np.sqrt(3.0)

    plate = a_file(tmp_path / "trial.c3d", late=late)
    trial = read_trial(tmp_path / "trial.c3d")
    loaded = plate.force[:, 2] > 100.0
    assert np.linalg.norm(trial.plates[0].cop()[loaded][:, :2] - plate.cop[loaded], axis=1).max() < off
    assert len(trial.notes) == 1
    got = trial.plates[0].geometry.corners
    np.testing.assert_allclose(np.linalg.norm(got - plate.corners, axis=1), 0.0, atol=off)
    assert abs((got[0] - got[1]) @ (got[0] - got[3])) < 1e-12


def test_corners_that_are_no_rectangle_are_refused(tmp_path: Path) -> None:
    def late(groups: Groups) -> None:
        groups["FORCE_PLATFORM"]["CORNERS"][:, 0] += 80.0

    a_file(tmp_path / "trial.c3d", late=late)
    with refusal(RecordingError, place="corners"):
        read_trial(tmp_path / "trial.c3d")


def by_matrix(kind: int, path: Path, late: Callable[[Groups], None] = lambda _: None) -> TruePlate:
    """Write a plate of type 3 with its channels in V, and the matrix that makes it a plate of type 5 or 7."""
    plate = a_walk(3, 600)
    forces = plate.channels(np.random.default_rng(0))
    mixed = np.diag([30.0, 31.0, 32.0, 33.0, 100.0, 101.0, 102.0, 103.0])
    mixed += np.random.default_rng(1).uniform(-1.0, 1.0, (8, 8))
    matrix = mixed
    if kind == 5:
        a, b = 1e3 * plate.half
        to_wrench = [
            [1, 1, 0, 0, 0, 0, 0, 0],
            [0, 0, 1, 1, 0, 0, 0, 0],
            [0, 0, 0, 0, 1, 1, 1, 1],
            [0, 0, 0, 0, b, b, -b, -b],
            [0, 0, 0, 0, -a, a, a, -a],
            [-b, b, a, -a, 0, 0, 0, 0],
        ]
        matrix = np.array(to_wrench) @ mixed

    def edit(groups: Groups) -> None:
        groups["ANALOG"]["UNITS"] = ["V"] * 8
        groups["FORCE_PLATFORM"] |= {"TYPE": np.array([kind]), "CAL_MATRIX": matrix[:, :, None]}
        if kind == 5:
            groups["FORCE_PLATFORM"]["ORIGIN"] = np.array([[0.0], [0.0], [1e3 * plate.origin[2]]])
        late(groups)

    a_file(path, 3, late=edit, added=forces @ np.linalg.inv(mixed).T - forces)
    return plate


@pytest.mark.parametrize("kind", [5, 7])
def test_a_plate_of_eight_channels_with_a_matrix(kind: int, tmp_path: Path) -> None:
    plate = by_matrix(kind, tmp_path / "trial.c3d")
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    assert trial.notes == ()


@pytest.mark.parametrize("kind", [5, 7])
def test_a_type_needs_the_matrix_of_its_size(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "trial.c3d"
    for matrix in (None, np.eye(6)[:, :, None], np.zeros((8, 8, 0))):
        by_matrix(kind, path, put("FORCE_PLATFORM", CAL_MATRIX=matrix))
        with refusal(RecordingError, place="force plate 1: FORCE_PLATFORM:CAL_MATRIX"):
            read_trial(path)
    by_matrix(kind, path, put("FORCE_PLATFORM", CHANNEL=np.arange(1, 7)[:, None]))
    with refusal(RecordingError, place="force plate 1: FORCE_PLATFORM:CHANNEL"):
        read_trial(path)


KISTLER = np.array(
    [
        [2.52e-15, -2.19e-10, -2.69e-7, -4.86e-11, 4.56e-6, -4.19e-2],
        [2.84e-15, -1.00e-10, -2.05e-6, -1.16e-10, 4.72e-6, 6.89e-2],
    ]
)
"""Coefficients of the size of a maker's, for mm."""


@pytest.mark.parametrize("kind", [3, 7])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_makers_polynomial_corrects_the_cop(kind: int, transposed: bool, tmp_path: Path) -> None:
    """Kistler's manuals have the formula; forces and the moment about the plate's z stay what they are."""
    coefficients = KISTLER if transposed else KISTLER.T
    late = put("FORCE_PLATFORM", FPCOPPOLY=coefficients[:, :, None])
    path = tmp_path / "trial.c3d"
    plate = by_matrix(7, path, late) if kind == 7 else a_file(path, 3, late=late)
    trial = read_trial(path)
    assert len(trial.notes) == 1
    one = trial.plates[0]
    turn = one.geometry.rotation
    on = plate.force[:, 2] > 100.0
    x, y = 1e3 * (np.column_stack([plate.cop - plate.centre, 0.0 * plate.twist]) @ turn)[on, :2].T
    p, q = KISTLER
    dx = (p[0] * y**4 + p[1] * y**2 + p[2]) * x**3 + (p[3] * y**4 + p[4] * y**2 + p[5]) * x
    dy = (q[0] * x**4 + q[1] * x**2 + q[2]) * y**3 + (q[3] * x**4 + q[4] * x**2 + q[5]) * y
    np.testing.assert_allclose(1e3 * one.cop(axes="plate")[on], np.column_stack([x - dx, y - dy]), atol=2e-3)
    assert 1.0 < np.hypot(dx, dy).max() < 30.0
    np.testing.assert_allclose(one.force()[on], plate.force[on], atol=1e-3)
    force = plate.force[on] @ turn
    about = plate.twist[on] * turn[2, 2] + 1e-3 * (x * force[:, 1] - y * force[:, 0])
    np.testing.assert_allclose(one.wrench("plate")[on, 5], about, atol=1e-3)


def test_a_polynomial_that_cannot_be_is_not_used(tmp_path: Path) -> None:
    for polynomial, notes in ((np.full((2, 6, 1), 1e-3), 1), (np.zeros((2, 6, 1)), 0)):
        plate = a_file(tmp_path / "trial.c3d", 3, late=put("FORCE_PLATFORM", FPCOPPOLY=polynomial))
        trial = read_trial(tmp_path / "trial.c3d")
        check(trial, plate)
        assert len(trial.notes) == notes
    a_file(tmp_path / "trial.c3d", 3, late=put("ANALOG", UNITS=["V"] * 8))
    with refusal(RecordingError, place="unit of Fx12: unit", value="V"):
        read_trial(tmp_path / "trial.c3d")


def test_outside_the_surface_a_polynomial_corrects_as_at_the_edge(tmp_path: Path) -> None:
    """There, those of makers grow without limit; a light load of noise would be anywhere."""
    walk = a_walk(3, 600)
    plate = replace(walk, cop=walk.centre + 40.0 * (walk.cop - walk.centre))
    a_file(tmp_path / "trial.c3d", 3, plate=plate, late=put("FORCE_PLATFORM", FPCOPPOLY=KISTLER.T[:, :, None]))
    one = read_trial(tmp_path / "trial.c3d").plates[0]
    on = plate.force[:, 2] > 100.0
    assert np.linalg.norm(one.cop()[on][:, :2] - plate.cop[on], axis=1).max() < 0.25


@pytest.mark.parametrize(("points", "moments"), [("mm", 1.0), ("m", 1e3)])
def test_a_calibration_whose_moments_have_another_unit_of_length_is_corrected_with_a_note(
    points: str, moments: float, tmp_path: Path
) -> None:
    """With N.m and mm, the CoP is 1000 times too close to the centre.

    With N.mm and m, it is 1000 times too far away.
    """
    length = 1.0 if points == "mm" else 1e-3
    rows = np.array([1.0, 1.0, 1.0, *[moments] * 3])[:, None, None]

    def late(groups: Groups) -> None:
        groups["POINT"]["UNITS"] = points
        platform = groups["FORCE_PLATFORM"]
        platform["CORNERS"], platform["ORIGIN"] = length * platform["CORNERS"], length * platform["ORIGIN"]
        platform["CAL_MATRIX"] = rows * a_walk(4, 1).calibration[:, :, None]

    plate = a_file(tmp_path / "trial.c3d", 4, late=late)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    assert len(trial.notes) == 1


def test_somebody_in_the_middle_of_a_plate_stays_there(tmp_path: Path) -> None:
    """A CoP within 0.1 mm of the centre would also be on the plate 1000 times as far off. The matrix decides."""
    walk = a_walk(4, 600)
    plate = replace(walk, cop=walk.centre + 2e-4 * (walk.cop - walk.centre), twist=0.0 * walk.twist, origin=np.zeros(3))
    plate = replace(plate, force=plate.force * [0.0, 0.0, 1.0])
    a_file(tmp_path / "trial.c3d", 4, plate=plate)
    trial = read_trial(tmp_path / "trial.c3d")
    loaded = plate.force[:, 2] > 100.0
    np.testing.assert_allclose(trial.plates[0].cop()[loaded][:, :2], plate.cop[loaded], atol=2e-6)
    assert trial.notes == ()


def test_moments_without_a_unit_are_in_the_one_that_has_the_cop_on_the_plate(tmp_path: Path) -> None:
    blank = put("ANALOG", UNITS=[""] * 6)
    plate = a_file(tmp_path / "trial.c3d", late=blank)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    assert trial.notes == ()

    def late(groups: Groups) -> None:
        blank(groups)
        groups["ANALOG"]["SCALE"] = np.array([1.0, 1.0, 1.0, 1e-3, 1e-3, 1e-3])

    a_file(tmp_path / "trial.c3d", late=late)
    trial = read_trial(tmp_path / "trial.c3d")
    check(trial, plate)
    assert len(trial.notes) == 1


def test_a_calibration_that_only_corrects_cross_talk_stays_what_it_is(tmp_path: Path) -> None:
    """Its channels are newtons and newton millimetres already: by its rows alone it would look like N.m."""

    def edit(groups: Groups) -> None:
        groups["FORCE_PLATFORM"]["CAL_MATRIX"] = np.eye(6)[:, :, None]
        calibration = a_walk(4, 1).calibration
        groups["ANALOG"]["SCALE"] = 1.0 / (np.diag(calibration) * [1.0, 1.0, 1.0, 1e3, 1e3, 1e3])

    plate = a_file(tmp_path / "trial.c3d", 4, edit=edit, late=put("ANALOG", SCALE=np.ones(6)))
    trial = read_trial(tmp_path / "trial.c3d")
    loaded = plate.force[:, 2] > 100.0
    np.testing.assert_allclose(trial.plates[0].cop()[loaded][:, :2], plate.cop[loaded], atol=1e-6)
    assert trial.notes == ()


@pytest.mark.parametrize(
    ("force", "moment", "newton", "metre"),
    [
        ("N", "Nmm", 1.0, 1e-3),
        ("nt", "ntmm", 1.0, 1e-3),
        ("Newton", "Newton mm", 1.0, 1e-3),
        ("Newtons", "Newton-millimeter", 1.0, 1e-3),
        (" N ", "N*mm", 1.0, 1e-3),
        ("[N]", "[N·mm]", 1.0, 1e-3),
        ("N", "NMM", 1.0, 1e-3),
        ("N", "Nmeter", 1.0, 1.0),
        ("kN", "kN.m", 1e3, 1.0),
        ("kgf", "kgf.m", 9.80665, 1.0),
        ("lb", "in-lb", 4.4482216152605, 0.0254),
        ("Newt", "N-mm", 1.0, 1e-3),
        ("lbs", "ft.lbs", 4.4482216152605, 0.3048),
    ],
)
def test_units_however_they_are_spelled(force: str, moment: str, newton: float, metre: float, tmp_path: Path) -> None:
    scale = np.array([newton] * 3 + [newton * metre / 1e-3] * 3)

    def edit(groups: Groups) -> None:
        groups["ANALOG"] |= {"UNITS": [force] * 3 + [moment] * 3, "SCALE": scale}

    plate = a_file(tmp_path / "trial.c3d", edit=edit, late=put("ANALOG", SCALE=np.ones(6)))
    check(read_trial(tmp_path / "trial.c3d"), plate)


@pytest.mark.parametrize("moment", ["N", "Nms", "mNm", "N.m2", "N.m/kg", "uV", "N.furlong"])
def test_what_is_no_moment_is_refused(moment: str, tmp_path: Path) -> None:
    a_file(tmp_path / "trial.c3d", late=put("ANALOG", UNITS=["N"] * 3 + [moment] * 3))
    with refusal(RecordingError, place="unit of Mx: unit", value=moment):
        read_trial(tmp_path / "trial.c3d")


def test_more_channels_than_a_dimension_counts_go_on_in_another_parameter(tmp_path: Path) -> None:
    """The plate's channels are the last of 300; SCALE2, OFFSET2 and UNITS2 are theirs."""
    path = tmp_path / "trial.c3d"
    n, others = 200, 294
    plate = a_walk(2, n)
    scale = np.array([1.0] * others + [0.5, 0.5, 0.5, 100.0, 100.0, 100.0])
    offset = np.array([0] * others + [100] * 6)
    units = ["V"] * others + ["N"] * 3 + ["Nmm"] * 3
    values = np.hstack(
        [np.ones((n, others)), plate.channels(np.random.default_rng(0)) * [1.0, 1.0, 1.0, 1e3, 1e3, 1e3]]
    )
    groups: Groups = {
        "POINT": {"USED": 0, "SCALE": -1.0, "FRAMES": n, "RATE": 200.0},
        "ANALOG": {
            "USED": others + 6,
            "GEN_SCALE": 1.0,
            "RATE": 200.0,
            **{
                f"{name}{part}": value
                for name, values_of in (("SCALE", scale), ("OFFSET", offset), ("UNITS", units))
                for part, value in (("", values_of[:255]), ("2", values_of[255:]))
            },
        },
        "FORCE_PLATFORM": {
            "USED": 1,
            "TYPE": np.array([2]),
            "CORNERS": 1e3 * plate.corners.T[:, :, None],
            "ORIGIN": 1e3 * plate.origin[:, None],
            "CHANNEL": others + np.arange(1, 7)[:, None],
        },
    }
    path.write_bytes(c3d_bytes(groups, values / scale + offset, per_frame=others + 6, rate=200.0))
    check(read_trial(path), plate, 8.0 * HALF * np.array([800.0, 100.0, 800.0, 400.0, 400.0, 20.0]) + 1e-4)
