"""The outline of a sole: edges about which a foot turns, and bounds from the centre of pressure elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from contact_support import biased, described
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from bipedsim.config.run import RunConfig
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim import Command, Observation
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.outline import Edge, Outline, _edges, outlines_text
from bipedsim_studies.identify.signals import signals_of

MOTIONS = {"pitch": 0.06, "roll": 0.08}
"""Amplitude of the ankles of a stiff robot that rocks at 3 Hz [rad]."""


class Rocks:
    """Swing the ankles of stiff legs, so that the feet turn about their edges."""

    AXIS = "pitch"

    def __init__(self, robot: Robot, params: object, dt: float) -> None:
        self._start, self._dt = robot.q_nominal[robot.idx_q].copy(), dt
        self._ankles = np.array(
            [MOTIONS[self.AXIS] * name.endswith(f"ankle_{self.AXIS}") for name in robot.joint_names]
        )
        self.readouts: dict[str, float] = {}

    def reset(self, observation: Observation) -> None:
        self._t = 0.0

    def update(self, observation: Observation) -> Command:
        self._t += self._dt
        wanted = self._start + min(1.0, self._t) * self._ankles * np.sin(6.0 * np.pi * self._t)
        return Command(3000.0 * (wanted - observation.joint_position) - 60.0 * observation.joint_velocity)


class RocksSideways(Rocks):
    AXIS = "roll"


def rocking(robot: Robot, axis: str, seed: int, ground: str = "flat") -> Recording:
    controller = f"{__name__}:{'Rocks' if axis == 'pitch' else 'RocksSideways'}"
    config = RunConfig(
        scenario="stand", controller=controller, hardware=biased(robot, seed), duration=4.0, ground=ground
    )
    return run(config)[0]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def misdescribed(robot: Robot, shift: Array, height: float) -> Robot:
    """Return the robot with soles whose edges are off by ``shift``: front, left, back, right; and too low by height."""
    signs = np.array([[0, 1], [2, 1], [2, 3], [0, 3]])
    moves = np.array([1.0, 1.0, -1.0, -1.0]) * shift
    soles = []
    for sole in robot.soles:
        placement = pin.SE3(sole.placement_joint_sole)
        placement.translation = placement.translation - height * placement.rotation[:, 2]
        soles.append(replace(sole, vertices=sole.vertices + moves[signs], placement_joint_sole=placement))
    return replace(robot, soles=tuple(soles))


def found(robot: Robot, recordings: list[Recording]) -> tuple[Outline, ...]:
    signals = [signals_of(each, robot) for each in recordings]
    return Contact.of(robot, described(robot), signals, ["run"] * len(signals)).outlines


@pytest.mark.parametrize("seed", [1, 2])
def test_edges_about_which_the_feet_turn_show_hidden_outline_and_height(robot: Robot, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    shift, height = rng.uniform(-0.012, 0.012, 4), float(rng.uniform(-4e-3, 4e-3))
    wrong = misdescribed(robot, shift, height)
    outlines = found(wrong, [rocking(robot, axis, seed) for axis in MOTIONS])
    truth = {"front": 0.16, "left": 0.065, "back": 0.08, "right": 0.065}
    for outline, sole in zip(outlines, robot.soles, strict=True):
        assert {edge.name for edge in outline.edges} == set(truth)
        for edge in outline.edges:
            assert edge.measured is not None, edge.name
            value, half = edge.measured
            assert abs(value - truth[edge.name]) < half < 3e-3, (edge.name, value, half)
            assert truth[edge.name] - 0.01 < edge.bound < truth[edge.name]
        assert outline.height is not None
        assert abs(outline.height[0] - height) < outline.height[1] < 5e-3
        assert outline.vertices is not None
        assert_allclose(outline.vertices, sole.vertices, atol=3e-3)


def test_a_sole_whose_moments_are_not_measured_is_unknown(robot: Robot) -> None:
    """Zeros instead of the moments would be a foot without extent."""
    recording = rocking(robot, "roll", 1)
    recording.ankle_wrench[:, 0, 3:] = np.nan
    signals = [signals_of(recording, robot)]
    contact = Contact.of(robot, described(robot), signals, ["run"])
    left, right = contact.outlines
    assert left.height is None
    assert all(edge.measured is None and math.isnan(edge.bound) for edge in left.edges)
    assert left.vertices is not None
    assert_allclose(left.vertices, robot.soles[0].vertices, atol=1e-9)
    assert any(edge.measured is not None for edge in right.edges)
    values = contact.as_json()["soles"][0]["edges"]
    assert all(edge["at_least"] is None and edge["value"] is None for edge in values)
    lines = [line for line in contact.text() if "robot.yaml" in line]
    assert len(lines) == 1


def test_edges_that_the_centre_of_pressure_does_not_reach_have_a_bound(robot: Robot) -> None:
    squat = run(RunConfig(scenario="squat", controller="posture", hardware=biased(robot, 3), duration=4.0))[0]
    loaded = squat.wrench[:, :, 2] > 0.1 * robot.weight
    for foot, outline in enumerate(found(robot, [squat])):
        assert outline.height is None
        cop = squat.cop[loaded[:, foot], foot]
        farthest = {"front": cop[:, 0].max(), "back": -cop[:, 0].min()}
        for edge in outline.edges:
            assert edge.measured is None
            assert edge.bound < edge.described
            if edge.name in farthest:
                assert farthest[edge.name] - 0.02 < edge.bound < farthest[edge.name]
        assert outline.vertices is not None
        assert_allclose(outline.vertices, robot.soles[foot].vertices, atol=1e-9)


def test_a_sole_that_is_described_too_small_reaches_to_the_centre_of_pressure(robot: Robot) -> None:
    squat = run(RunConfig(scenario="squat", controller="posture", hardware=biased(robot, 3), duration=4.0))[0]
    small = misdescribed(robot, np.array([-0.12, 0.0, 0.0, 0.0]), 0.0)
    for outline in found(small, [squat]):
        (front,) = [edge for edge in outline.edges if edge.name == "front"]
        assert front.bound > front.described == pytest.approx(0.04)
        assert outline.vertices is not None
        assert outline.vertices[:, 0].max() == pytest.approx(front.bound)


def test_a_foot_that_turns_about_the_edge_of_a_step_does_not_show_its_own_edge(robot: Robot) -> None:
    """On flat ground, the centre of pressure is farther out than the edge of the step, so it is none of the sole."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, robot.q_nominal)
    sole = robot.soles[0]
    origin = (data.oMi[sole.joint_id] * sole.placement_joint_sole).translation
    step = origin[0] + 0.12
    ground = f"{{patches: [{{region: [[-1.0, -1.0], [{step}, -1.0], [{step}, 1.0], [-1.0, 1.0]]}}]}}"
    on_step, flat = rocking(robot, "pitch", 1, ground), rocking(robot, "pitch", 2)
    for outline in found(robot, [on_step]):
        (front,) = (edge for edge in outline.edges if edge.name == "front")
        assert front.measured is not None
        assert front.measured[0] == pytest.approx(0.12, abs=2e-3)
    for outline in found(robot, [on_step, flat]):
        (front,) = (edge for edge in outline.edges if edge.name == "front")
        assert front.measured is None
        assert front.obstacle is not None
        assert front.obstacle < front.bound
        assert front.best == front.described
        assert [edge for edge in outline.edges if edge.obstacle is not None] == [front]


def octagon(robot: Robot, shift: float) -> Outline:
    """Return a sole of eight edges of which one, about 14 mm long, is measured ``shift`` farther out than described."""
    angles = np.radians([-20.0, -10.0, 10.0, 20.0, 90.0, 160.0, 200.0, 270.0])
    sole = replace(robot.soles[0], vertices=0.08 * np.stack([np.cos(angles), np.sin(angles)], axis=1))
    normals, described_at = _edges(sole)
    edges = tuple(
        Edge("left", f"{k}", float(at), 0.0, (float(at) + shift, 1e-3) if k == 0 else None)
        for k, at in enumerate(described_at)
    )
    assert np.all(normals @ sole.vertices.T <= described_at[:, None] + 1e-9)
    return Outline(sole, edges, None)


@given(shift=st.floats(-0.05, 0.05))
def test_vertices_are_those_that_the_edges_bound_or_none(robot: Robot, shift: float) -> None:
    """A vertex of a convex polygon is inside all of its edges."""
    outline = octagon(robot, shift)
    normals, _ = _edges(outline.sole)
    distances = np.array([edge.best for edge in outline.edges])
    vertices = outline.vertices
    text = list(outlines_text([outline]))
    assert any(".vertices: [" in line for line in text) == (vertices is not None)
    if vertices is not None:
        assert np.all(normals @ vertices.T <= distances[:, None] + 1e-9)
        lengths = np.linalg.norm(np.roll(vertices, -1, axis=0) - vertices, axis=1)
        assert lengths.min() > 1e-3
    if abs(shift) < 1e-4:
        assert vertices is not None
    if shift > 3e-3 or shift < -7.5e-3:
        assert vertices is None


def test_a_robot_that_never_turns_its_feet_is_told_what_would(robot: Robot) -> None:
    squat = run(RunConfig(scenario="squat", controller="posture", duration=4.0))[0]
    contact = Contact.of(robot, described(robot), [signals_of(squat, robot)], ["run"])
    values = contact.as_json()["soles"]
    assert all(edge["value"] is None and math.isfinite(edge["at_least"]) for sole in values for edge in sole["edges"])
