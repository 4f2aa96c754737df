"""Quantities derived from the channels of a plate, compared with a person whose wrench is known in the world frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refusal

from bipedsim.plates import THRESHOLD, PlateGeometry, PlateSignals, as_json, from_json

SQUARE = np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
DOWN = np.diag([1.0, -1.0, -1.0])


def plate(kind: int, turn: np.ndarray | None = None, **given) -> PlateGeometry:  # type: ignore[no-untyped-def]
    turn = np.eye(3) if turn is None else turn
    corners = np.array([0.5, 0.1, 0.02]) + (SQUARE * [0.2, 0.3, 0.0]) @ (turn @ DOWN).T
    calibration = np.eye(6) + 0.1 * np.random.default_rng(1).normal(size=(6, 6))
    offset = np.array([0.001, 0.002, -0.04])
    return PlateGeometry(
        "one", corners, kind, offset=offset, half_base=np.array([0.12, 0.2]), calibration=calibration, **given
    )


number = st.floats(-1.0, 1.0)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([1, 2, 3, 4]), st.tuples(*[number] * 8), st.sampled_from(["person", "plate"]))
def test_every_type_gives_back_who_stands_there(kind: int, drawn: tuple[float, ...], on: str) -> None:
    """Force, CoP, free moment and moment of a reaction at a known point of the surface, of plates however they lie."""
    a, b, roll, pitch, yaw, fx, fy, tz = drawn
    turn = pin.rpy.rpyToMatrix(0.5 * roll, 0.5 * pitch, 3.0 * yaw)
    geometry = plate(kind, turn, channels_on=on)
    n = turn[:, 2]
    np.testing.assert_allclose(geometry.normal, n, atol=1e-12)
    np.testing.assert_allclose(geometry.transducer_origin[2] < geometry.centre[2], True)
    point = geometry.centre + turn @ np.array([0.2 * a, 0.3 * b, 0.0])
    force = turn @ np.array([100.0 * fx, 100.0 * fy, 700.0])
    moment = np.cross(point - geometry.transducer_origin, force) + 5.0 * tz * n
    R = geometry.rotation
    channels = geometry.channels(np.concatenate([R.T @ force, R.T @ moment])[None])
    signals = PlateSignals(np.zeros(1), geometry, channels)
    np.testing.assert_allclose(signals.force()[0], force, atol=1e-9)
    np.testing.assert_allclose(signals.force(on="plate")[0], -force, atol=1e-9)
    np.testing.assert_allclose(signals.moment()[0], moment, atol=1e-9)
    np.testing.assert_allclose(signals.moment_about(point)[0], 5.0 * tz * n, atol=1e-9)
    np.testing.assert_allclose(signals.cop()[0], point, atol=1e-12)
    np.testing.assert_allclose(signals.free_moment(), [5.0 * tz], atol=1e-9)
    np.testing.assert_allclose(signals.free_moment(axes="plate"), [-5.0 * tz], atol=1e-9)
    assert signals.normal_force()[0] == pytest.approx(700.0)
    assert np.isnan(signals.cop(701.0)).all()


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("on", ["person", "plate"])
@pytest.mark.parametrize("up", [True, False])
def test_an_unloaded_plate_has_no_cop(kind: int, on: str, up: bool) -> None:
    """Up to the threshold, and under a pull, which no person does: NaN, and no warning of a division by zero."""
    geometry = plate(kind, channels_on=on)
    if not up:
        # Some laboratories let z of their plates look up.
        geometry = replace(geometry, corners=geometry.corners[[1, 0, 3, 2]], offset=-geometry.offset)
    # Exactly at the threshold there is none; a calibration matrix rounds.
    at = THRESHOLD if kind != 4 else THRESHOLD - 1e-9
    normal = np.array([0.0, 1e-9, 19.9, at, 20.1, 700.0, -19.9, -20.1, -700.0])
    point = geometry.centre + np.array([0.05, -0.1, 0.0])
    arm = geometry.rotation.T @ (point - geometry.centre)
    force = np.column_stack([np.zeros((9, 2)), geometry.up * normal])
    wrench = np.hstack([force, np.cross(geometry.offset + arm, force)])
    signals = PlateSignals(np.arange(9.0), geometry, geometry.channels(wrench))
    known = normal > THRESHOLD
    for values in (signals.cop(), signals.cop(axes="plate"), signals.free_moment()[:, None]):
        np.testing.assert_array_equal(np.isfinite(values).all(axis=1), known)
        assert np.isnan(values[~known]).all()
    np.testing.assert_allclose(signals.cop()[known], [point] * 2, atol=1e-9)
    np.testing.assert_array_equal(signals.loaded(), known)
    np.testing.assert_allclose(signals.normal_force(), normal, atol=1e-9)
    # Without a threshold everything that pushes has one.
    pushes = normal > 0.0
    if kind != 1:
        np.testing.assert_array_equal(np.isfinite(signals.cop(0.0)).all(axis=1), pushes)
        np.testing.assert_allclose(signals.cop(0.0)[pushes], [point] * 5, atol=1e-6)


def test_signs_are_those_of_c3d() -> None:
    """A C3D file contains the reaction. For a standing person, Fz of a plate with z down is negative."""
    geometry = plate(2)
    up = np.array([[0.0, 0.0, -700.0, 0.0, 0.0, 0.0]])
    assert PlateSignals(np.zeros(1), geometry, up).force()[0, 2] == pytest.approx(700.0)
    kistler = plate(3)
    on_first = np.array([[0.0] * 4 + [-100.0, 0.0, 0.0, 0.0]])
    # Sensor 1 is at (+a, +b) in the plate's axes.
    np.testing.assert_allclose(
        PlateSignals(np.zeros(1), kistler, on_first).cop(axes="plate")[0], [0.12 - 0.001, 0.2 - 0.002], atol=1e-12
    )


def test_geometry_goes_through_text_to_the_bit() -> None:
    geometry = plate(4, pin.rpy.rpyToMatrix(0.1, 0.2, 0.3))
    assert as_json(from_json(as_json(geometry))) == as_json(geometry)
    with refusal(place="force plate", cause=KeyError):
        from_json({"name": "a"})


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"kind": 5}, "type"),
        ({"corners": np.zeros((4, 3))}, "corners"),
        ({"corners": SQUARE[[0, 2, 1, 3]]}, "corners"),
        ({"corners": np.full((4, 3), np.nan)}, "corners"),
        ({"rate": 0.0}, "rate"),
        ({"kind": 3, "half_base": np.zeros(2)}, "half_base"),
        ({"channel_names": ("a",)}, "channel_names"),
    ],
)
def test_what_no_plate_is_says_so(change: dict[str, object], key: str) -> None:
    with refusal(place=f"force plate 'bad': {key}"):
        PlateGeometry(**{"name": "bad", "corners": SQUARE, **change})  # type: ignore[arg-type]
    with refusal(place="channels"):
        PlateSignals(np.zeros(2), plate(2), np.zeros((2, 5)))
