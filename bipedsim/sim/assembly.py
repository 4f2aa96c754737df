"""The participants that a simulation starts with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import HardwareParams, Robot
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.sim.actuators import Actuators
from bipedsim.sim.gantry import Gantry, GantryConfig
from bipedsim.sim.participant import Participant, Simulation
from bipedsim.sim.pushes import Pushes
from bipedsim.sim.reactions import Reactions
from bipedsim.sim.sensor_suite import SensorSuite
from bipedsim.sim.steps import Steps
from bipedsim.sim.tick import Tick
from bipedsim.touch import Touching

if TYPE_CHECKING:
    from bipedsim.sim.objects import Objects


@dataclass(frozen=True, eq=False)
class SimulatorConfig:
    """Store the arguments of a :class:`Simulator`."""

    robot: Robot
    ground: Ground | None
    contact: str
    physics_dt: float
    control_dt: float | None
    contact_params: Mapping[str, Any]
    hardware: str | Mapping[str, Any]
    seed: int
    events: bool
    objects: tuple[ObjectConfig, ...]
    gantry: GantryConfig | None
    force_plates: tuple[PlateConfig, ...]
    height_scan: ArrayLike | None


class Core(Simulation, Protocol):
    """Describe a simulation before it has its participants."""

    config: SimulatorConfig
    ground: Ground
    plant: Robot
    hardware: HardwareParams
    drives: Actuators
    tick: Tick
    sensors: SensorSuite


def assemble(sim: Core, plant: Robot, events: bool) -> tuple[Steps, tuple[Participant, ...]]:
    """Make the stepper and the participants of ``sim``, in the order in which they have to act.

    Args:
        sim: The simulation.
        plant: The simulated robot, with the dampers of its drives.
        events: Whether impacts happen within a step.
    """
    config, dynamics = sim.config, sim.dynamics
    shapes = plant.shapes.shapes if sim.hardware.body_contact else ()
    objects: Objects | None = None
    if config.objects:
        if sim.ground.field is not None:
            problem = "cannot rest on a height field yet. Remove the objects, or use a ground of patches"
            raise ConfigError(problem, "objects", len(config.objects))
        # The collision library takes long to load, so it is loaded only for objects.
        from bipedsim.sim.objects import Objects

        friction = sim.hardware.body_friction if shapes else None
        budget = dynamics.projection.budget
        objects = Objects(config.objects, sim.robot, sim.ground, sim.physics_dt, friction, budget)
    touching: Touching | None = None
    if shapes or len(dynamics.bodies.point):
        of_bodies = sim.hardware.body_friction, sim.hardware.body_restitution
        sides = None if objects is None else objects.sides
        touching = Touching(plant, shapes, dynamics, sim.solver, sim.ground, *of_bodies, sides)
        if objects is not None:
            objects.join(touching)
    gantry = None
    if config.gantry is not None:
        gantry = Gantry(config.gantry, sim.robot, sim.physics_dt, sim.tick.n_steps)
    participants: list[Participant | None] = [
        Pushes(plant.model, objects),
        gantry,
        sim.drives,
        objects,
        Reactions(sim.robot, sim.plant, touching, sim.control_dt, sim.tick.n_steps),
    ]
    plates = (*sim.ground.force_plates, *config.force_plates)
    if plates:
        from bipedsim.sim.force_plates import ForcePlates

        loads = dynamics, sim.solver.result, touching, objects
        participants.append(ForcePlates(plates, sim.ground, *loads, sim.physics_dt, sim.control_dt))
    participants += [sim.tick if sim.tick.n_steps > 1 else None, sim.sensors]
    stepper = Steps(plant.model, dynamics, sim.solver, sim.physics_dt, events, touching)
    return stepper, tuple(participant for participant in participants if participant is not None)
