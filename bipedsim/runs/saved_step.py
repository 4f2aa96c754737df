"""Save one physics step with its complete initial state to a file, and repeat it with every contact model."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.analysis import compare_robot
from bipedsim.config import OWN, own_content
from bipedsim.contact import CONTACT_MODELS, make_contact_model, mode_name
from bipedsim.dynamics import Dynamics
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.ground import Ground
from bipedsim.model import ROBOTS, Robot, load_robot, perturbed, read_hardware
from bipedsim.numerics import Array, call
from bipedsim.objects import parse_objects
from bipedsim.recording import checksum
from bipedsim.sim import JOINT, MONITORS, Monitors, Simulator, Steps
from bipedsim.touch import Touching, add_impulses

if TYPE_CHECKING:
    from bipedsim.sim import Objects


def watch(sim: Simulator, log: Callable[[str], None] | None, path: Path | None = None) -> Monitors:
    """Monitor the physics of ``sim``: log violations, and save the first step with a violation.

    Args:
        sim: The simulator.
        log: Called with a line for each kind of violation; if None, violations are only counted, and no step is saved.
        path: File for the step; by default a new file in the folder for temporary files.
    """
    if log is None:
        return sim.watch(lambda name, message, begun: None)
    kept: list[Path] = []

    def report(name: str, message: str, begun: dict[str, NDArray[Any]]) -> None:
        if name == MONITORS[JOINT] and not sim.hardware.joint_stops:
            log(f"{message}: its joints have no stops")
            return
        try:
            if not kept:
                file = path or _new_file(f"bipedsim_step_{sim.robot.name}_{sim.config.contact}_")
                save_step(file, sim, begun)
                kept.append(file)
            command = shlex.join(["bipedsim", "replay", str(kept[0])])
            where = f"; `{command}` repeats the first such step under every contact model"
        except OSError as error:
            where = f"; the step could not be saved in {path or tempfile.gettempdir()} ({error.strerror})"
        log(f"contact model {sim.config.contact}: {message}{where}")

    return sim.watch(report)


def _new_file(prefix: str) -> Path:
    """Create a new file with a unique name, since all runs and users share the folder for temporary files."""
    handle, name = tempfile.mkstemp(".npz", prefix)
    os.close(handle)
    return Path(name)


def save_step(path: Path, sim: Simulator, begun: Mapping[str, NDArray[Any]]) -> None:
    """Write the initial state ``begun`` of a step of ``sim``, as its monitors report it, to a file.

    Raises:
        OSError: The file cannot be written.
    """
    settings = settings_of(sim)
    kept: dict[str, Any] = {f"ground_{name}": array for name, array in sim.ground.saved().items()}
    if sim.objects is not None:
        # Objects take their step after or together with the robot, so they are still in their initial state here.
        settings["objects"] = [one.text() for one in sim.objects.configs]
        kept |= {f"objects_{name}": array for name, array in _of_objects(sim.objects).items()}
    about = json.dumps(settings)
    with path.open("wb") as file:
        np.savez(file, about=np.array(about), about_crc=checksum(about), **kept, **dict[str, Any](begun))


def _of_objects(objects: Objects) -> dict[str, NDArray[Any]]:
    """Return copies of the initial state of a step of the free objects, including their pushes."""
    bodies = objects.world.bodies
    return {**objects.state(), "force": bodies.force.copy(), "torque": bodies.torque.copy()}


def _objects_again(
    path: Path, configs: Sequence[str], kept: Mapping[str, NDArray[Any]], robot: Robot, ground: Ground, h: float
) -> Callable[[float | None], Objects | None]:
    """Return a function that makes the free objects of a saved step in their initial state.

    Its argument is the friction of the robot's bodies, None without body contacts.

    Raises:
        ConfigError: The saved state of the objects is damaged.
    """
    if not configs:
        return lambda friction: None
    # The collision library takes long to load, so it is loaded only for objects.
    from bipedsim.sim import Objects

    state = {name.removeprefix("objects_"): kept[name] for name in kept if name.startswith("objects_")}

    def make(friction: float | None) -> Objects:
        objects = Objects(parse_objects(configs), robot, ground, h, friction)
        fresh = _of_objects(objects)
        wrong = [
            name
            for name, array in fresh.items()
            if name not in state or state[name].shape != array.shape or not np.isfinite(state[name]).all()
        ]
        if wrong:
            raise ConfigError("they do not fit the objects: the file is damaged", f"{path}: {', '.join(wrong)}")
        objects.world.set_state(state)
        objects.world.bodies.force[:], objects.world.bodies.torque[:] = state["force"], state["torque"]
        return objects

    return make


def settings_of(sim: Simulator) -> dict[str, Any]:
    """Return the settings of ``sim`` except its ground, in a form that JSON can store."""
    return {
        "robot": ROBOTS.kept(sim.robot.source),
        "robot_content": dict(sim.robot.content),
        "code": own_content()[OWN],
        "contact_model": sim.config.contact,
        "contact_params": dict(sim.config.contact_params),
        "hardware": dataclasses.asdict(sim.hardware),
        "physics_dt": sim.physics_dt,
    }


@dataclass(frozen=True, eq=False)
class Replayed:
    """Store the result of one contact model for a repeated step.

    Attributes:
        model: Name of the contact model.
        figures: As :meth:`bipedsim.sim.Monitors.figures` returns them.
        violated: Descriptions of the violations.
        fastest: Largest entry of the velocity after the step [m/s, rad/s].
        force: (K,) normal force over the step [N]. bodies: (3,) force on all other bodies, in the world [N].
        modes: Contact mode of each foot in words.
        unresolved: Whether the model found no solution.
        objects: Velocities (6,) of the free objects after the step by name: linear [m/s] and angular [rad/s], each in
            the axes of its object.
        without: Names of free objects that are missing here, because an older file stores only their names.
    """

    model: str
    figures: dict[str, dict[str, Any]]
    violated: tuple[str, ...]
    fastest: float
    force: Array
    bodies: Array
    modes: tuple[str, ...]
    unresolved: bool
    objects: dict[str, Array]
    without: tuple[str, ...]


def is_step(path: Path) -> bool:
    """Return whether :func:`save_step` wrote the file ``path``, which may be truncated."""
    if path.suffix != ".npz" or not os.path.isfile(path):
        return False
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            return "torque" in file.files
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return False


def replay_step(path: Path) -> tuple[Replayed, ...]:
    """Repeat a saved step with every contact model, each without stored state.

    The model of the run uses the parameters of the run, and all others use their defaults.

    Raises:
        RecordingError: The file contains no step.
        BipedSimError: Its robot or its contact model no longer exists.
    """
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            kept = {name: file[name] for name in file.files}
        about = json.loads(str(kept["about"]))
        if not np.array_equal(kept["about_crc"], checksum(str(kept["about"]))):
            raise ValueError("its description of the run was changed")
        name_of_robot, of_model, params_of_model, h = (
            about[name] for name in ("robot", "contact_model", "contact_params", "physics_dt")
        )
        values_of_hardware = about["hardware"]
        begun = {name: kept[name] for name in ("q", "v", "torque", "push", "damping")}
        # Older files do not store the active joint limits; the step then starts without active ones.
        begun["held"] = kept.get("held", np.zeros(0, dtype=np.int64))
        ground = Ground.of_saved({name.removeprefix("ground_"): value for name, value in kept.items()})
    except (OSError, ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordingError(f"not a step that a monitor saved ({error})", path) from error
    robot = load_robot(name_of_robot)
    compare_robot(robot, about)
    hardware = read_hardware(values_of_hardware, robot)
    plant = perturbed(robot, hardware)
    nv = plant.model.nv
    sizes = {"q": plant.model.nq, "v": nv, "torque": plant.nu, "push": nv, "damping": len(plant.joint_damping)}
    wrong = [name for name, n in sizes.items() if begun[name].shape != (n,) or not np.isfinite(begun[name]).all()]
    if wrong:
        raise ConfigError(
            f"not of {robot.name}: the robot has changed since the step was saved, or the file is damaged",
            f"{path}: {', '.join(wrong)}",
        )
    plant = dataclasses.replace(plant, joint_damping=begun["damping"])
    shapes = plant.shapes.shapes if hardware.body_contact else ()
    objects_with = _objects_again(path, about.get("objects", ()), kept, robot, ground, h)
    results = []
    for name in CONTACT_MODELS:
        params = params_of_model if name == of_model else {}
        dynamics = Dynamics(plant, ground, h, hardware, shapes)
        if len(begun["held"]) == len(dynamics.stops.held):
            dynamics.stops.held[:] = begun["held"]
        contact = make_contact_model(name, dynamics.projection, h, params)
        objects = objects_with(hardware.body_friction if shapes else None)
        touching = None
        if shapes or len(dynamics.bodies.point):
            of_bodies = hardware.body_friction, hardware.body_restitution
            sides = None if objects is None else objects.sides
            touching = Touching(plant, shapes, dynamics, contact, ground, *of_bodies, sides)
            if objects is not None:
                objects.join(touching)
        monitors = Monitors(plant, dynamics, contact, begun["torque"], touching)
        v = begun["v"].copy()
        monitors.restart(v)
        dynamics.push[:] = begun["push"]
        seen = 0

        def judge(q: Array, v_next: Array, share: float, monitors: Monitors = monitors) -> None:
            nonlocal seen
            seen |= monitors.look(1, q, v_next, share, q is begun["q"])

        steps = Steps(plant.model, dynamics, contact, h, touching=touching)
        if objects is not None:
            objects.begin(begun["q"], begun["v"])
        steps.take(begun["q"], v, begun["torque"], judge)
        if objects is not None:
            objects.end()
        bodies = np.zeros((plant.model.njoints, 3))
        if touching is not None and steps.touched:
            call(add_impulses, touching.contacts, bodies)
        result = contact.result
        rows = zip(result.mode, result.sliding, result.n_vertices, strict=True)
        results.append(
            Replayed(
                name,
                monitors.figures(),
                tuple(description for _, description in monitors.described(seen)),
                float(np.abs(v).max()),
                result.impulse[:, 2] / h,
                bodies.sum(axis=0) / h,
                tuple(mode_name(int(mode), bool(slides), int(n)) for mode, slides, n in rows),
                contact.result.unresolved > 0,
                {} if objects is None else dict(zip(objects.names, objects.twists(), strict=True)),
                tuple(about.get("without", ())),
            )
        )
    return tuple(results)
