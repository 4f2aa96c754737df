"""Force plates under a robot and objects: sums, divisions, all kinds of steps, and no side effects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import check_fields

from bipedsim.config import RunConfig
from bipedsim.contact import CONTACT_MODELS, ContactResult
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig, PlateSignals
from bipedsim.recording import joined, load_recording
from bipedsim.runs import prepare
from bipedsim.runs.replay import rerun
from bipedsim.runs.runner import Run, run
from bipedsim.sim import Simulator

ROBOT = load_robot("biped14")
HALVES = (
    PlateConfig(name="back", size=(0.4, 0.6), position=(-0.17, 0.0, 0.0), thickness=0.04),
    PlateConfig(name="front", size=(0.4, 0.6), position=(0.23, 0.0, 0.0), type=3, half_base=(0.12, 0.2)),
)


def world_load(sim: Simulator) -> Array:
    """Return the load of plates and floor in the last physics step, about the world origin."""
    assert sim.force_plates is not None
    loads = sim.force_plates.loads
    found = loads[-1].copy()
    for load, g in zip(loads, sim.force_plates.amplifiers.geometries, strict=False):
        f, m = g.rotation @ load[:3], g.rotation @ load[3:]
        found += np.concatenate([f, m + np.cross(g.transducer_origin, f)])
    return found


def feet_load(sim: Simulator) -> Array:
    """Return the same of the feet, from their impulses in the last physics step."""
    d, result = sim.dynamics, sim.solver.result
    found = np.zeros(6)
    for k, impulse in enumerate(result.impulse):
        f, m = d.ground_axes[k] @ impulse[:3], d.ground_axes[k] @ impulse[3:]
        found += np.concatenate([f, m + np.cross(d.sole_origins[k], f)]) / sim.physics_dt
    return found


def motion(contact: str, scenario: str = "steps", plates: tuple[PlateConfig, ...] = HALVES, **given: Any) -> Run:
    prepared = prepare(RunConfig(scenario=scenario, contact_model=contact, **given))
    ground = Ground(prepared.ground.patches, force_plates=plates)
    return Run(replace(prepared, ground=ground))


@pytest.mark.long
@pytest.mark.parametrize("contact", sorted(CONTACT_MODELS))
def test_plates_and_floor_carry_what_the_feet_do(contact: str) -> None:
    """In every step of a robot that shifts its weight across a border, landings in parts of a step among them."""
    run = motion(contact, "drop")
    worst, most, both = 0.0, 0.0, 0
    for _ in range(400):
        run.control()
        run.step()
        feet = feet_load(run.sim)
        worst = max(worst, float(np.abs(world_load(run.sim) - feet).max()))
        most = max(most, float(np.abs(feet).max()))
        loads = run.sim.force_plates.loads  # type: ignore[union-attr]
        both += bool((np.abs(loads[:2, 2]) > 1.0).all())
    assert most > ROBOT.weight
    assert worst <= 1e-12 * most
    assert both > 50


def test_standing_is_weighed_and_the_cop_is_that_of_the_simulator() -> None:
    run = motion("one_step", "stand", physics_dt=5e-4, duration=0.5)
    plates = run.sim.force_plates
    assert plates is not None
    for _ in range(500):
        run.control()
        run.step()
    amplifiers = plates.amplifiers
    found = []
    for p, g in enumerate(amplifiers.geometries):
        rows = amplifiers.samples(p)
        found.append(PlateSignals(rows[:, 0], g, rows[:, 1:]))
    total = sum(float(one.normal_force()[-1]) for one in found)
    assert total == pytest.approx(ROBOT.weight, rel=1e-4)
    cop = sum(one.normal_force()[-1] * one.cop()[-1] for one in found) / total
    np.testing.assert_allclose(cop, run.sim.ground_truth().cop_world, atol=2e-6)


def test_a_landing_peaks_as_the_plate_does_and_not_as_the_step() -> None:
    """A fall of 5 cm onto rigid feet: impacts appear as J / h in a step, and cause ringing of up to J w at a plate."""
    peaks, bare = [], []
    for h in (1e-3, 2.5e-4):
        plate = PlateConfig(name="all", size=(3.0, 3.0), natural_frequency=200.0, damping=0.05, rate=20_000.0)
        run = motion("one_step", "drop", (plate,), physics_dt=h)
        steps = [0.0]

        def look(result: ContactResult, _: Array, steps: list[float] = steps) -> None:
            steps[0] = max(steps[0], result.wrench[:, 2].sum())

        run.sim.on_physics_step = look
        found = 0.0
        for _ in range(120):
            run.control()
            run.step()
            found = max(found, -run.sim.force_plates.amplifiers.samples(0)[:, 3].min())  # type: ignore[union-attr]
        peaks.append(found)
        bare.append(steps[0])
    assert bare[1] > 2.0 * bare[0]
    assert peaks[1] == pytest.approx(peaks[0], rel=0.08)


@pytest.mark.long
def test_plates_change_no_bit_and_a_snapshot_has_them() -> None:
    noisy = (PlateConfig(name="one", size=(1.0, 1.0), noise=1.0, drift=0.1, natural_frequency=200.0, rate=1300.0),)
    plain, watched = motion("one_step", plates=(), duration=1.0), motion("one_step", plates=noisy, duration=1.0)
    for one in (plain, watched):
        for _ in range(150):
            one.control()
            one.step()
    assert plain.sim.q.tobytes() == watched.sim.q.tobytes()
    sim = watched.sim
    assert sim.force_plates is not None
    before = sim.snapshot()
    command = np.array(watched.command)

    def go_on() -> list[bytes]:
        found = []
        for _ in range(20):
            sim.step(command)
            found.append(sim.force_plates.amplifiers.samples(0).tobytes())  # type: ignore[union-attr]
        return found

    first = go_on()
    sim.restore(before)
    assert go_on() == first
    assert len({*first}) == 20


def test_objects_rest_on_plates_and_bounce_off_them() -> None:
    """A box across a border and a bouncing ball: weights, and the momentum change of the ball."""
    objects = (
        ObjectConfig(name="crate", shape="box", mass=10.0, size=(0.4, 0.2, 0.1), position=(3.1, 0.0, 0.05)),
        ObjectConfig(
            name="ball", shape="ball", mass=0.5, radius=0.1, position=(3.8, 0.0, 0.3), velocity=(0, 0, -2.0),
            restitution=0.5,
        ),
    )  # fmt: skip
    plates = (
        PlateConfig(name="a", size=(1.0, 1.0), position=(2.5, 0.0, 0.0)),
        PlateConfig(name="b", size=(1.0, 1.0), position=(3.5, 0.0, 0.0)),
    )
    sim = Simulator(ROBOT, objects=objects, force_plates=plates)
    g = 9.81
    impulse, speed = 0.0, -2.0
    for i in range(200):
        sim.step(np.zeros(ROBOT.nu))
        loads = sim.force_plates.loads  # type: ignore[union-attr]
        crate = np.array([98.1 / 4, 98.1 * 3 / 4])
        if i > 0:
            # The box's corners at 2.9 and 3.3 m: two on each plate.
            assert -loads[0, 2] == pytest.approx(0.5 * crate.sum(), rel=1e-6)
        impulse += 1e-3 * (-loads[1, 2] - 0.5 * crate.sum())
    t = 0.2
    velocity = sim.objects.twists()[1, 2]  # type: ignore[union-attr]
    assert velocity > 0.0
    assert impulse == pytest.approx(0.5 * (velocity - speed + g * t), rel=1e-3)


def test_bodies_that_lie_on_a_plate_are_felt() -> None:
    plates = (PlateConfig(name="all", size=(6.0, 6.0), position=(1.0, 0.0, 0.0)),)
    run = motion("one_step", "fall", plates)
    while run.sim.t < 3.0:
        run.control()
        run.step()
    load = run.sim.force_plates.loads  # type: ignore[union-attr]
    assert run.sim.reactions.touching is not None
    assert run.sim.reactions.touching.carries
    bodies = run.sim.body_impulse.sum(axis=0)[2] / run.sim.control_dt
    feet = feet_load(run.sim)[2]
    assert bodies > 10.0
    assert -load[0, 2] == pytest.approx(bodies + feet, rel=1e-9)
    np.testing.assert_allclose(load[1], 0.0, atol=1e-9)


def test_a_plate_that_is_not_flush_says_where() -> None:
    wrong = (
        PlateConfig(name="high", size=(0.4, 0.4), position=(0.0, 0.0, 0.2)),
        PlateConfig(name="steep", size=(0.4, 0.4), position=(1.0, 0.0, 0.0), rpy=(0.3, 0.0, 0.0)),
        PlateConfig(name="low", size=(0.4, 0.4), position=(2.0, 0.0, -0.1)),
    )
    with pytest.raises(ConfigError) as caught:
        Simulator(ROBOT, force_plates=wrong)
    high, steep, low = caught.value.faults
    check_fields(high, place="force_plates: 'high': at [0.0, 0.0, 0.2]")
    check_fields(low, place="force_plates: 'low': at [2.0, 0.0, -0.1]")
    assert "'steep'" in steep.place
    Simulator(ROBOT, Ground.flat(0.2), force_plates=wrong[:1])


def test_what_a_plate_lacks_is_told_with_its_name() -> None:
    high = PlateConfig(name="high", size=(0.4, 0.4), position=(0.0, 0.0, 0.2))
    wrong = PlateConfig(name="Bad"), PlateConfig(name="bare"), high
    with pytest.raises(ConfigError) as caught:
        Simulator(ROBOT, force_plates=wrong)
    assert {"force_plates: 'Bad': name", "force_plates: 'bare': size", "force_plates: 'high': at [0.0, 0.0, 0.2]"} <= {
        fault.place for fault in caught.value.faults
    }


def test_files_hold_the_samples_and_a_replay_repeats_them(tmp_path: Path) -> None:
    path = tmp_path / "plates.yaml"
    path.write_text(
        "controller: posture\nforce_plates:\n"
        "  - {name: fast, size: [0.6, 0.6], rate: 2500, noise: 0.1, range: 2000, bits: 16}\n"
        "  - {name: slow, size: [0.6, 0.6], position: [0.7, 0, 0], rate: 100}\n"
    )
    recording, _ = run(RunConfig(scenario=str(path), duration=0.3, rate=200.0, physics_dt=1e-3))
    assert [len(one) for one in recording.force_plates.values()] == [751, 31]
    recording.save(tmp_path / "run.npz")
    again = load_recording(tmp_path / "run.npz")
    for name, one in recording.force_plates.items():
        np.testing.assert_allclose(np.diff(one.t), 1.0 / one.geometry.rate, rtol=1e-9)
        assert again.force_plates[name].channels.tobytes() == one.channels.tobytes()
        assert again.force_plates[name].t.tobytes() == one.t.tobytes()
    done = rerun(again)
    assert done.first is None
    again.force_plates["fast"].channels[300, 2] += 1e-9
    assert "force_plate_fast (Fz)" in str(rerun(again).first)
    # Samples go with the rows that they were taken before.
    parts = [recording.rows(slice(a, b)) for a, b in ((0, 7), (7, 30), (30, None))]
    assert [len(part.force_plates["fast"]) for part in parts] == [88, 288, 375]
    whole = joined(parts)
    assert whole.force_plates["fast"].channels.tobytes() == recording.force_plates["fast"].channels.tobytes()
