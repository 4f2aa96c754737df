"""Headless run: robot, controller, scenario and contact model in one process, without ROS."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from bipedsim.analysis import (
    ControllerStop,
    controller_figures,
    object_figures,
    sole_depth,
    sole_drift,
    summary,
    with_stop,
)
from bipedsim.config import ProgressBar, RunConfig, check, together, without_prefix
from bipedsim.contact import contact_params
from bipedsim.control import Controller, Guard, Tuning, controller_params, make_controller
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, get_ground
from bipedsim.model import IDEAL, Robot, load_robot
from bipedsim.numerics import Array, announced, compile_seconds
from bipedsim.recording import Recording
from bipedsim.runs.content import run_content
from bipedsim.runs.faults import Fault, FaultSchedule, for_run
from bipedsim.runs.rollout import Rollout, label_of
from bipedsim.runs.scenario import Scenario, get_scenario
from bipedsim.runs.scenario_host import controller_params_for, no_velocity
from bipedsim.runs.velocities import VelocitySchedule
from bipedsim.sim import Command, GantryConfig, Simulator, VertexForces, announced_events, read_gantry, whole_ratio

_T = TypeVar("_T")
SETTLE = 1.0
"""Initial time [s] that the metrics of standing ignore."""
# Compile times on one core [s]: of the kernels of a contact model and a controller, and of all kernels of a first walk.
_COMPILING, _COMPILING_ALL = 10.0, 60.0
MADE_ROOM_FOR = 50_000
"""Largest number of rows that a run allocates in advance; the recording of a longer run grows."""


class RunInterruptedError(KeyboardInterrupt):
    """Report that Ctrl-C has ended a headless run early.

    Attributes:
        recording, summary: Those of the simulated part, as :func:`run` returns them.
    """

    def __init__(self, recording: Recording, summary: dict[str, Any]) -> None:
        self.recording = recording
        self.summary = summary
        super().__init__(f"interrupted at t = {recording.t[-1]:.3f} s")


class Observer(Protocol):
    """Watch a run while it is simulated, to see more than the recording contains."""

    def start(self, sim: Simulator, readouts: Mapping[str, float]) -> None:
        """Receive the simulator in its initial state, and the live debug signals of the controller."""
        ...

    def tick(self, tau_joint: Array, seconds: float) -> None:
        """Receive the torques ``tau_joint`` (nu,) [N.m] of the last tick, and its computing time ``seconds``."""
        ...


@dataclass(frozen=True, eq=False)
class Prepared:
    """Store the objects that the settings name, loaded and checked.

    Attributes:
        settings: The settings, with values of the scenario filled in.
        robot, ground, scenario: The loaded objects.
        guard: Monitor that hosts a new controller with the parameters of the scenario and the settings.
        tuning: Changes of its live parameters.
        faults: Injected faults.
        gantry: Gantry that holds the robot at first; None without one.
        control_dt, physics_dt: Periods [s]; their ratio is whole.
        ticks: Control ticks of the run.
    """

    settings: RunConfig
    robot: Robot
    ground: Ground
    scenario: Scenario
    guard: Guard
    tuning: Tuning
    faults: tuple[Fault, ...]
    gantry: GantryConfig | None
    control_dt: float
    physics_dt: float
    ticks: int


def prepare(settings: RunConfig, scenario: Scenario | None = None, ground: Ground | None = None) -> Prepared:
    """Load and check everything that the settings name, except the contact model.

    Args:
        settings: Settings of the run.
        scenario, ground: Used instead of those that the settings name.

    Raises:
        ConfigError: Something in the settings is wrong.
    """
    check(settings, "run")
    scenario = get_scenario(settings.scenario) if scenario is None else scenario
    together([fault.within(f"scenario {settings.scenario!r}") for fault in scenario.problems()])
    controller = scenario.controller if settings.controller is None else settings.controller
    duration = scenario.duration if settings.duration is None else settings.duration
    ground_name = scenario.ground if settings.ground is None else settings.ground
    hardware = scenario.hardware if settings.hardware is None else settings.hardware
    gantry = read_gantry(scenario.gantry if settings.gantry is None else settings.gantry)
    control_dt = 1.0 / settings.rate
    physics_dt = control_dt if settings.physics_dt is None else settings.physics_dt
    whole_ratio(control_dt, physics_dt)
    robot = load_robot(settings.robot)
    scenario_params = controller_params_for(scenario, controller, settings.scenario)
    settings_params = without_prefix(settings.controller_params, controller)

    def make(params: Mapping[str, Any]) -> Controller:
        return make_controller(controller, robot, params, control_dt)

    def naming_scenario(use: Callable[[Mapping[str, Any]], _T]) -> _T:
        try:
            return use({**scenario_params, **settings_params})
        except ConfigError as error:
            # The message names the scenario if its parameters fail alone and those of the settings do not.
            if not _fails(use, scenario_params) or _fails(use, settings_params):
                raise
            raise error.within(f"scenario {settings.scenario!r}: controller_params") from error

    # All other settings are checked first, so that a misspelt name is reported before the controller is compiled.
    params = naming_scenario(partial(controller_params, controller, robot))
    ground = get_ground(ground_name) if ground is None else ground
    faults = for_run(scenario.faults, settings.faults)
    contact = without_prefix(settings.contact_params, settings.contact_model)
    contact_params(settings.contact_model, contact)
    with _announced(settings):
        instance = naming_scenario(make)
    guard = Guard(instance, robot, dt=control_dt)
    if scenario.velocity and guard.set_velocity is None:
        raise no_velocity(settings.scenario, controller)
    tuning = Tuning(guard.tune, params, scenario.changes, f"scenario {settings.scenario!r}: changes")
    return Prepared(
        settings=replace(
            settings,
            controller=controller,
            duration=duration,
            ground=ground_name,
            hardware=hardware,
            posture=settings.posture or scenario.posture,
            contact_params=contact,
        ),
        robot=robot,
        ground=ground,
        scenario=scenario,
        guard=guard,
        tuning=tuning,
        faults=faults,
        gantry=gantry,
        control_dt=control_dt,
        physics_dt=physics_dt,
        ticks=max(1, round(duration * settings.rate)),
    )


def _announced(settings: RunConfig) -> AbstractContextManager[None]:
    return announced(f"contact model {settings.contact_model} and controller", _COMPILING, _COMPILING_ALL)


def _fails(use: Callable[[Mapping[str, Any]], object], params: Mapping[str, Any]) -> bool:
    try:
        use(params)
    except ConfigError:
        return True
    return False


class Run:
    """Simulate a run tick by tick: the simulator, the guarded controller, pushes and velocity commands.

    The run clips every command to the effort limits of the robot, as its drives would.

    Args:
        prepared: The run. Its controller is used up, so another run needs a new one.
        log, step_file: Called with the violations of the physics, and file for the first step with a violation; see
            :func:`bipedsim.runs.watch`. By default violations are only counted.

    Attributes:
        sim, guard: The simulator and the controller.
        tuning: Changes live parameters of the controller, see :meth:`bipedsim.control.Tuning.set`.
        rollout: The run without its controller.
        faults: Injected faults between them; only with faults, a command that is not finite is dropped.
        observation: The last observation that reached the controller.
        command: The last command of the controller: torques (nu,) within the effort limits [N.m], or an impedance
            (6, nu), which the drives keep within them.
        dropped_commands: Number of commands that were not finite.
        described: Everything that is needed to simulate the run again, see :func:`bipedsim.runs.describe_run`.

    Raises:
        ConfigError: A parameter of the contact model is wrong, or a push names no body of the robot.
    """

    def __init__(
        self, prepared: Prepared, log: Callable[[str], None] | None = None, step_file: Path | None = None
    ) -> None:
        robot, scenario, settings = prepared.robot, prepared.scenario, prepared.settings
        self._limit, self._least = robot.effort_limit, -robot.effort_limit
        self._velocities = VelocitySchedule(scenario.velocity) if scenario.velocity else None
        self._answer: Command | None = None
        self.guard, self.tuning = prepared.guard, prepared.tuning
        self.sim = sim = Simulator(
            robot,
            prepared.ground,
            contact=settings.contact_model,
            physics_dt=prepared.physics_dt,
            control_dt=prepared.control_dt,
            contact_params=settings.contact_params,
            hardware=settings.hardware or IDEAL,
            seed=settings.seed,
            objects=scenario.objects,
            gantry=prepared.gantry,
            force_plates=scenario.force_plates,
            height_scan=self.guard.height_points,
        )
        self.faults = FaultSchedule(prepared.faults, robot, prepared.control_dt, settings.seed)
        self.dropped_commands = 0
        self.command = self._torque = np.zeros(robot.nu)
        self.described: dict[str, Any] = {}
        pushes = [push.for_robot(robot, scenario.objects) for push in scenario.pushes]
        self.rollout = Rollout(sim, pushes, self.faults, log, step_file, self._note_event)
        if log is not None and sim.reactions.touching is not None:
            for warning in robot.shapes.left_out:
                log(str(warning))
        with _announced(settings):
            self._begin(prepared)

    def _begin(self, prepared: Prepared) -> None:
        """Move to the start of the run and load all kernels."""
        sim, guard = self.sim, self.guard
        self.rollout.warm_up(events=False)
        self.observation = self.rollout.begin(prepared.settings.posture, prepared.scenario.drop_height)
        self.described = {**self.rollout.described(), "pushes": []}
        self._show_truth()
        guard.reset(self.observation)
        self._steer()
        # The first update may load kernels. It also counts as the first update of the run, because a controller may
        # have an internal counter.
        self._answer = guard.update(self.observation)
        if self._answer.closes_loop:
            sim.warm_up(loops=True, events=False)

    def _note_event(self, event: dict[str, Any]) -> None:
        if "push" in event:
            self.described["pushes"].append(event["push"])
        if "move" in event:
            self.described.setdefault("moves", []).append(event["move"])

    def _show_truth(self) -> None:
        """Write the true velocity for a controller that asks for it."""
        if self.guard.true_velocity is not None:
            self.guard.true_velocity[:] = self.sim.v[:3]

    def _steer(self) -> None:
        """Pass a velocity command and parameters that are due to the controller."""
        self.tuning.due(self.sim.t)
        velocity = None if self._velocities is None else self._velocities.due(round(self.sim.t * 1e9))
        if velocity is not None:
            self.guard.steer(velocity)

    def control(self) -> None:
        """Update the command from the last observation; the old command holds if observation or command is lost."""
        self._steer()
        self._show_truth()
        rollout = self.rollout
        if not rollout.is_measured:
            return
        command, self._answer = self._answer or self.guard.update(self.observation), None
        if self.faults.faults and self.sim.t > 0.0:
            if not rollout.hears():
                return
            if not np.isfinite(command.tau_joint).all():
                self.dropped_commands += 1
                return
        if not command.closes_loop:
            np.maximum(command.tau_joint, self._least, out=self._torque)
            self.command = np.minimum(self._torque, self._limit, out=self._torque)
        elif self.guard.fresh:
            self.command = command.packed(self._limit)

    def step(self) -> None:
        """Take the next tick with the present command.

        Raises:
            DivergenceError: The simulation left the finite numbers.
        """
        self.observation = self.rollout.tick(self.command)


def run(
    settings: RunConfig | Prepared,
    progress: bool | str = False,
    observer: Observer | None = None,
    log: Callable[[str], None] | None = None,
    step_file: Path | None = None,
    partial: Callable[[Recording, dict[str, Any]], None] | None = None,
    vertex_forces: bool = False,
    interrupted: Callable[[float], None] = lambda _t: None,
) -> tuple[Recording, dict[str, Any]]:
    """Simulate a run; return the recording, one row per control tick, and the summary with the keys of summary.json.

    Args:
        settings: The run, as settings or as the result of :func:`prepare`, which is used up.
        progress: Show a progress bar on stderr; a text is its label.
        observer: Watches the run.
        log, step_file: As in :class:`Run`.
        partial: Called with recording and summary of the simulated part if an error ends the run. The error may be a
            divergence of the simulation, or any exception of the controller.
        vertex_forces: Also record the forces at the vertices of the soles.
        interrupted: Called at once with the time [s] if Ctrl-C ends the run, before its summary is made.

    Raises:
        ConfigError: Something in the settings is wrong, or there are no forces at vertices.
        DivergenceError: The simulation left the finite numbers.
        RunInterruptedError: Ctrl-C was pressed after the first tick; the error contains the simulated part.
    """
    with _announced(settings if isinstance(settings, RunConfig) else settings.settings):
        prepared = settings if isinstance(settings, Prepared) else prepare(settings)
        run = Run(prepared, log, step_file)
        builder = Recording.Builder(prepared.robot, min(prepared.ticks, MADE_ROOM_FOR))
    run.described["content"] = run_content(vars(prepared.settings).items())
    vertices = VertexForces(run.sim) if vertex_forces else None
    if vertices is not None and vertices.lacking:
        raise ConfigError(f"not known in this run: {vertices.lacking}", "vertex forces")
    if observer is not None:
        observer.start(run.sim, run.guard.readouts)

    started = time.perf_counter() - compile_seconds()

    def elapsed() -> float:
        # The real-time factor excludes compile times, for example those of the first impact or fall.
        return time.perf_counter() - compile_seconds() - started

    try:
        label = progress if isinstance(progress, str) else None
        with announced_events():
            for _ in ProgressBar(range(prepared.ticks), desc=label, unit="tick", disable=not progress):
                run.control()
                note(builder, run.guard)
                before = time.perf_counter()
                run.step()
                seconds = time.perf_counter() - before
                append(builder, run, vertices)
                if observer is not None:
                    observer.tick(run.sim.command.tau_joint, seconds)
    except KeyboardInterrupt as error:
        if not len(builder):
            raise
        interrupted(len(builder) * prepared.control_dt)
        # The result is made within this handler, where the command line does not repeat the interrupt.
        raise RunInterruptedError(*_result(prepared, run, builder, elapsed())) from error
    except Exception:
        if len(builder) and partial is not None:
            partial(*_result(prepared, run, builder, elapsed()))
        raise
    return _result(prepared, run, builder, elapsed())


def _result(
    prepared: Prepared, run: Run, builder: Recording.Builder, elapsed: float
) -> tuple[Recording, dict[str, Any]]:
    """Return the recording and the summary of the ticks in ``builder``, which took ``elapsed`` [s]."""
    settings, robot, rollout = prepared.settings, prepared.robot, run.rollout
    recording = builder.build()
    recording.about = _about(settings)
    recording.run = {**run.described, "settings": _plain(asdict(settings))}
    recording.pushes = prepared.scenario.push_times
    recording.changes = tuple(run.tuning.applied)
    stop = ControllerStop.of(run.guard)
    if stop is not None:
        stop.note(recording)
    duration = len(recording) * prepared.control_dt
    faults = [str(fault) for fault in prepared.faults]
    counted = {
        "duration_s": duration,
        "rate_hz": settings.rate,
        "real_time_factor": duration / elapsed,
        "overruns": 0,
        "missed_commands": 0,
        "commands_dropped": run.dropped_commands,
        "round_trip_us": None,
    }
    # These counters cover every physics step, whereas the recording contains only control ticks.
    exact = {"state_changes": rollout.state_changes, "unresolved_steps": rollout.unresolved_steps}
    outcome = rollout.outcome(duration)
    physics = outcome.pop("physics")
    physical = {
        "foot_drift_m": sole_drift(recording, SETTLE),
        "penetration_m": float(sole_depth(recording, robot, prepared.ground).max()),
        "physics": physics,
        "faults": faults or None,
        "commands_lost": run.faults.lost_commands if prepared.faults else None,
    }
    # The rows alone do not contain these statistics. The speed of the machine is not a property of the run.
    statistics = {"robot": robot.name, "ticks": len(recording), **counted, **exact, **physical, **outcome}
    recording.statistics = _plain({name: statistics[name] for name in statistics if name != "real_time_factor"})
    ending = with_stop(outcome, stop, faults)
    figures = {"robot": robot.name, **summary(recording, settle=SETTLE), **counted, **exact}
    return recording, {**figures, **physical, **controller_figures(recording), **object_figures(recording), **ending}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to JSON types; other types become lists or their text."""

    def convert(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    return json.loads(json.dumps(values, default=convert))


def note(builder: Recording.Builder, guard: Guard) -> None:
    """Add the debug signals and the state estimate of the controller to the current row, after its update."""
    estimate = guard.estimate
    builder.note(guard.readouts, odometry=None if estimate is None else estimate.q[:7])


def append(builder: Recording.Builder, run: Run, vertices: VertexForces | None = None) -> None:
    """Add a row for the last tick of ``run``, with the forces at ``vertices`` if they are recorded."""
    sim = run.sim
    truth = sim.ground_truth()
    forces = () if vertices is None else vertices.read(truth.pose_world_sole)
    builder.append(
        sim.t, run.observation, sim.contact, truth, sim.command, sim.objects, sim.force_plates, vertex_forces=forces
    )


def _about(settings: RunConfig) -> dict[str, str]:
    """Return the description of the run for figures."""
    return {
        "scenario": label_of(settings.scenario),
        "controller": settings.controller or "",
        "contact_model": settings.contact_model,
        "ground": label_of(settings.ground or ""),
    }
