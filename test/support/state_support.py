"""Complete state and outputs of a simulator, to the bit, and scenes in which all of its parts act."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.sim import GantryConfig
from bipedsim.sim.simulator import Simulator, Snapshot


def noise(snapshot: Snapshot) -> dict[str, object]:
    """Return the measurements with errors, and the state of the random numbers."""
    state = snapshot.participants["sensors"]["noise"]
    if state is None:
        return {}
    observation = state["observation"]
    seen = {name: getattr(observation, name) for name in type(observation).__slots__}
    return {**seen, "seed": state["seed"], "generator": str(state["generator"])}


def traces(sim: Simulator) -> dict[str, np.ndarray]:
    """Return all that a simulator shows and all that its next step depends on, by name."""
    truth = sim.ground_truth()
    effort, taken = sim.drives.loads(sim.v)
    snapshot = sim.snapshot()
    states = snapshot.participants
    observation, pushes = states["sensors"]["ideal"], states["pushes"]
    groups: dict[str, dict[str, object]] = {
        "truth": vars(truth),
        "contact": sim.contact.arrays(),
        "memory": snapshot.contact,
        "footing": snapshot.footing,
        "observation": {name: getattr(observation, name) for name in type(observation).__slots__},
        "drives": states["drives"],
        "noise": noise(snapshot),
        "asked": {"torque": sim.command.tau_joint, "setpoint": sim.command.setpoint if sim.command.closes_loop else ()},
        "own": {"t": sim.t, "q": sim.q, "v": sim.v, "effort": effort, "taken": taken, "pushes": len(pushes)},
        "drawn": {"seed": sim.seed, "draw": sim.draw},
        "impulses": {
            "stops": sim.stop_impulse,
            "loops": sim.loop_impulse,
            "bodies": sim.body_impulse,
        },
        "touching": used(states["reactions"]["touching"], "used", ("key", "impulse")),
        "objects": states.get("objects", {}),
        "gantry": states.get("gantry", {}),
        "plates": states.get("force_plates", {}),
    }
    return dict(flat(groups))


def used(held: Mapping[str, np.ndarray] | None, count: str, rows: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the arrays; those named in ``rows`` only up to the number in the array ``count``."""
    held = held or {}
    return {name: value[: int(held[count][0])] if name in rows else value for name, value in held.items()}


def flat(held: Mapping[str, object], above: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield all arrays in dictionaries of dictionaries, by the path to each."""
    for name, value in held.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", np.array(value)


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert list(one) == list(other)
    different = [name for name in one if one[name].tobytes() != other[name].tobytes()]
    assert different == []


def among_things(model: str = "one_step") -> Simulator:
    """Return biped14 on a force plate, with a box at its knees and a ball that comes at it."""
    box: dict[str, Any] = {"shape": "box", "size": (0.2, 0.6, 0.6), "mass": 0.5, "position": (0.35, 0.0, 0.3)}
    ball: dict[str, Any] = {"shape": "ball", "radius": 0.1, "mass": 1.0, "position": (-0.8, 0.1, 0.5)}
    return Simulator(
        load_robot("biped14"),
        contact=model,
        objects=[ObjectConfig(name="box", **box), ObjectConfig(name="ball", velocity=(4.0, 0.0, 2.0), **ball)],
        force_plates=[PlateConfig(name="plate", size=(2.0, 2.0))],
    )


def in_a_gantry() -> Simulator:
    """Return g1 on a rope, over a force plate."""
    plate = PlateConfig(name="plate", size=(2.0, 2.0))
    return Simulator(load_robot("g1"), gantry=GantryConfig(clearance=0.01), force_plates=[plate])


def with_loops() -> Simulator:
    """Return a robot whose ankles are moved by closed chains."""
    return Simulator(load_robot("parallel_ankles"))
