"""A headless run: robot, controller, scenario and contact model in one process, without ROS."""

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
from tqdm import tqdm

from bipedsim.analysis import controller_figures, object_figures, sole_depth, sole_drift, summary, with_stop
from bipedsim.config import RunConfig, check, without_prefix
from bipedsim.contact import contact_params
from bipedsim.control import Controller, Guard, controller_params, make_controller
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, get_ground
from bipedsim.model import IDEAL, Robot, load_robot
from bipedsim.numerics import Array, announced, compile_seconds
from bipedsim.recording import Recording
from bipedsim.runs.content import run_content
from bipedsim.runs.faults import JOINTS, Fault, FaultSchedule, for_run
from bipedsim.runs.rollout import Rollout, start_state
from bipedsim.runs.scenario import Scenario, get_scenario
from bipedsim.runs.scenario_host import controller_params_for, no_velocity
from bipedsim.runs.velocities import VelocitySchedule
from bipedsim.sim import Command, GantryConfig, Simulator, VertexForces, read_gantry, whole_ratio

_T = TypeVar("_T")
SETTLE = 1.0
"""Time [s] at the start that figures of standing leave out."""
# Seconds that kernels of a contact model and a controller take on one core, and all that a first walk takes.
_COMPILING, _COMPILING_ALL = 15.0, 90.0
MADE_ROOM_FOR = 50_000
"""Rows whose memory is taken beforehand; that of a run that is longer grows with what is simulated."""


class RunInterruptedError(KeyboardInterrupt):
    """Ctrl-C has ended a headless run before its time.

    Attributes:
        recording, summary: Of what was simulated until then, as :func:`run` returns them of a whole run.
    """

    def __init__(self, recording: Recording, summary: dict[str, Any]) -> None:
        self.recording = recording
        self.summary = summary
        super().__init__(f"interrupted at t = {recording.t[-1]:.3f} s")


class Observer(Protocol):
    """Who looks into a run while it goes on: what the recording does not hold."""

    def start(self, sim: Simulator, readouts: Mapping[str, float]) -> None:
        """Take in the simulator, at rest in its first state, and what the controller shows, live."""
        ...

    def tick(self, tau_joint: Array, seconds: float) -> None:
        """Take in that the simulator made a step under ``tau_joint`` (nu,) [N.m], which took ``seconds``."""
        ...


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the settings name, found and checked.

    Attributes:
        settings: The settings with what the scenario says in them.
        robot, ground, scenario: The things themselves.
        guard: Hosts a new controller, told what the scenario needs and what the settings say.
        faults: What fails on purpose.
        gantry: What holds the robot at first.
        control_dt, physics_dt: Periods [s]; their ratio is whole.
        ticks: Control ticks of the run.
    """

    settings: RunConfig
    robot: Robot
    ground: Ground
    scenario: Scenario
    guard: Guard
    faults: tuple[Fault, ...]
    gantry: GantryConfig | None
    control_dt: float
    physics_dt: float
    ticks: int


def prepare(settings: RunConfig, scenario: Scenario | None = None, ground: Ground | None = None) -> Prepared:
    """Find and check everything that the settings name, but for the contact model.

    Args:
        settings: The run.
        scenario, ground: Instead of those that the settings name.

    Raises:
        ConfigError: Something in the settings is wrong.
    """
    check(settings, "run")
    scenario = get_scenario(settings.scenario) if scenario is None else scenario
    controller = scenario.controller if settings.controller is None else settings.controller
    duration = scenario.duration if settings.duration is None else settings.duration
    named = scenario.ground if settings.ground is None else settings.ground
    hardware = scenario.hardware if settings.hardware is None else settings.hardware
    gantry = read_gantry(scenario.gantry if settings.gantry is None else settings.gantry)
    control_dt = 1.0 / settings.rate
    physics_dt = control_dt if settings.physics_dt is None else settings.physics_dt
    whole_ratio(control_dt, physics_dt)
    robot = load_robot(settings.robot)
    told = controller_params_for(scenario, controller, settings.scenario)
    own = without_prefix(settings.controller_params, controller)

    def make(params: Mapping[str, Any]) -> Controller:
        return make_controller(controller, robot, params, control_dt)

    def blamed(use: Callable[[Mapping[str, Any]], _T]) -> _T:
        try:
            return use({**told, **own})
        except ConfigError as error:
            # The scenario is to blame where it fails alone, and what else is given does not.
            if not _fails(use, told) or _fails(use, own):
                raise
            raise ConfigError(f"scenario {settings.scenario!r}: controller_params: {error}") from error

    # All else is read first: whoever misspelt a name need not wait until the controller's kernels are compiled.
    blamed(partial(controller_params, controller, robot))
    ground = get_ground(named) if ground is None else ground
    faults = for_run(scenario.faults, settings.faults)
    contact = without_prefix(settings.contact_params, settings.contact_model)
    contact_params(settings.contact_model, contact)
    with _announced(settings):
        made = blamed(make)
    guard = Guard(made, robot, dt=control_dt)
    if scenario.velocity and guard.set_velocity is None:
        raise ConfigError(no_velocity(settings.scenario, controller))
    return Prepared(
        settings=replace(
            settings,
            controller=controller,
            duration=duration,
            ground=named,
            hardware=hardware,
            contact_params=contact,
        ),
        robot=robot,
        ground=ground,
        scenario=scenario,
        guard=guard,
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
    """A run, tick by tick: the simulator, the guarded controller, pushes and velocity commands.

    The effort limits of the robot are applied to every command, as its drives would.

    Args:
        prepared: What to run; the controller is used, so that another run needs another one.
        log, step_file: What the monitors of the physics say, and where they keep a step; see
            :func:`bipedsim.runs.watch`. By default they only count.

    Attributes:
        sim, guard: The simulator and the controller.
        rollout: The run without its controller.
        faults: What fails between them; a command that is not finite is dropped only where there are some.
        observation: What the controller was told last of what the robot measured.
        command: What the controller asked for last: torques (nu,) within the effort limits [N.m], or an impedance
            (6, nu), which the drives keep within them.
        dropped_commands: How many commands were not finite.
        described: All that it takes to simulate it again, see :func:`bipedsim.runs.describe_run`.

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
        self.guard = prepared.guard
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
        )
        self.faults = FaultSchedule(prepared.faults, robot, prepared.control_dt, settings.seed)
        self.dropped_commands = 0
        self.command = self._torque = np.zeros(robot.nu)
        self.described: dict[str, Any] = {}
        pushes = [push.for_robot(robot, scenario.objects) for push in scenario.pushes]
        self.rollout = Rollout(sim, pushes, self.faults, log, step_file, self._note_event)
        if log is not None and sim.reactions.touching is not None:
            for warning in robot.shapes.warnings:
                log(warning)
        with _announced(settings):
            self._begin(prepared)

    def _begin(self, prepared: Prepared) -> None:
        """Go to the start of the run, all kernels loaded."""
        sim, guard, scenario = self.sim, self.guard, prepared.scenario
        self.rollout.warm_up()
        posture, height = prepared.settings.posture, scenario.drop_height
        start = start_state(prepared.robot, prepared.ground, posture, height, prepared.gantry)
        self.observation = self.rollout.start(start)
        self.described = {**self.rollout.described(), "pushes": []}
        guard.reset(self.observation)
        self._steer()
        # The first update may load kernels. It is the first of the run, too: a controller may count.
        self._answer = guard.update(self.observation)
        if self._answer.closes_loop:
            sim.warm_up(loops=True)

    def _note_event(self, event: dict[str, Any]) -> None:
        if "push" in event:
            self.described["pushes"].append(event["push"])

    def _steer(self) -> None:
        """Hand the velocity that is due to the controller."""
        velocity = None if self._velocities is None else self._velocities.due(round(self.sim.t * 1e9))
        if velocity is not None:
            self.guard.steer(velocity)

    def control(self) -> None:
        """Let the controller answer the last observation; without one, and where the answer is lost, the last holds."""
        self._steer()
        faults = self.faults
        if faults.faults and not faults.sent[JOINTS]:
            return
        command, self._answer = self._answer or self.guard.update(self.observation), None
        if faults.faults and self.sim.t > 0.0:
            if not faults.hears(self.sim.t):
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
        """Take the tick that the controller's answer is for.

        Raises:
            DivergenceError: The simulation left the finite numbers.
        """
        self.observation = self.rollout.tick(self.command)


def run(
    settings: RunConfig | Prepared,
    progress: bool = False,
    observer: Observer | None = None,
    label: str = "",
    log: Callable[[str], None] | None = None,
    step_file: Path | None = None,
    partial: Callable[[Recording, dict[str, Any]], None] | None = None,
    vertex_forces: bool = False,
    interrupted: Callable[[float], None] = lambda _t: None,
) -> tuple[Recording, dict[str, Any]]:
    """Run and return the recording, one row per control tick, and the summary with the keys of summary.json.

    Args:
        settings: What to run; or what :func:`prepare` made of it, which is used up.
        progress: Show a bar on stderr.
        observer: Looks on.
        label: Stands before the bar.
        log, step_file: Of :class:`Run`.
        partial: Called with recording and summary of what was simulated before an error ends the run: that of a
            simulation that left the finite numbers, or whatever the controller raises.
        vertex_forces: Record the forces at the vertices of the soles too.
        interrupted: Called at once with the time [s] where Ctrl-C ends the run, before its summary is made.

    Raises:
        ConfigError: Something in the settings is wrong, or there are no such forces.
        DivergenceError: The simulation left the finite numbers.
        RunInterruptedError: Ctrl-C came after the first tick; holds what was simulated.
    """
    with _announced(settings if isinstance(settings, RunConfig) else settings.settings):
        prepared = settings if isinstance(settings, Prepared) else prepare(settings)
        run = Run(prepared, log, step_file)
        builder = Recording.Builder(prepared.robot, min(prepared.ticks, MADE_ROOM_FOR))
    run.described["content"] = run_content(vars(prepared.settings).items())
    vertices = VertexForces(run.sim) if vertex_forces else None
    if vertices is not None and vertices.lacking:
        raise ConfigError(f"forces at vertices cannot be recorded of this run: {vertices.lacking}")
    if observer is not None:
        observer.start(run.sim, run.guard.readouts)

    started = time.perf_counter() - compile_seconds()

    def elapsed() -> float:
        # What a first landing or fall compiles is no part of how fast the next one is.
        return time.perf_counter() - compile_seconds() - started

    try:
        for _ in tqdm(range(prepared.ticks), desc=label or None, unit="tick", disable=not progress, leave=False):
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
        # In here, where the command line does not repeat the interrupt.
        raise RunInterruptedError(*_result(prepared, run, builder, elapsed())) from error
    except Exception:
        if len(builder) and partial is not None:
            partial(*_result(prepared, run, builder, elapsed()))
        raise
    return _result(prepared, run, builder, elapsed())


def _result(
    prepared: Prepared, run: Run, builder: Recording.Builder, elapsed: float
) -> tuple[Recording, dict[str, Any]]:
    """Return recording and summary of the ticks in ``builder``, which took ``elapsed`` [s]."""
    settings, robot, sim = prepared.settings, prepared.robot, run.sim
    recording = builder.build()
    recording.about = _about(settings)
    recording.run = {**run.described, "settings": _plain(asdict(settings))}
    recording.pushes = prepared.scenario.push_times
    if run.guard.fell_at is not None:
        recording.gave_up_at, recording.gave_up_why = run.guard.fell_at, run.guard.reason
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
    # Counted on every physics step and across the whole run, where the recording only sees control ticks.
    exact = {"state_changes": sim.contact.state_changes, "unresolved_steps": sim.contact.unresolved}
    outcome = run.rollout.outcome(duration)
    physics = outcome.pop("physics")
    seen = {
        "foot_drift_m": sole_drift(recording, SETTLE),
        "penetration_m": float(sole_depth(recording, robot, prepared.ground).max()),
        "physics": physics,
        "faults": faults or None,
        "commands_lost": run.faults.lost_commands if prepared.faults else None,
    }
    # What a reader of the rows alone could not find; how fast the machine was is no part of the run.
    kept = {"robot": robot.name, "ticks": len(recording), **counted, **exact, **seen, **outcome}
    recording.statistics = _plain({name: kept[name] for name in kept if name != "real_time_factor"})
    told = with_stop(outcome, run.guard.fell_at, run.guard.reason, faults)
    figures = {"robot": robot.name, **summary(recording, settle=SETTLE), **counted, **exact}
    return recording, {**figures, **seen, **controller_figures(recording), **object_figures(recording), **told}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON holds them; of what it has no words for, what Python prints."""

    def other(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    return json.loads(json.dumps(values, default=other))


def note(builder: Recording.Builder, guard: Guard) -> None:
    """Add what the controller shows after its update to the row that it has answered."""
    estimate = guard.estimate
    builder.note(guard.readouts, odometry=None if estimate is None else estimate.q[:7])


def append(builder: Recording.Builder, run: Run, vertices: VertexForces | None = None) -> None:
    """Add a row for the tick that ``run`` has taken, with the forces at ``vertices`` where these are wanted."""
    sim = run.sim
    truth = sim.ground_truth()
    forces = () if vertices is None else vertices.read(truth.pose_world_sole)
    builder.append(
        sim.t, run.observation, sim.contact, truth, sim.command, sim.objects, sim.force_plates, vertex_forces=forces
    )


def _about(settings: RunConfig) -> dict[str, str]:
    """Return what a picture says of the run; a file's name without its folders."""
    return {
        "scenario": Path(settings.scenario).stem,
        "controller": settings.controller or "",
        "contact_model": settings.contact_model,
        "ground": Path(settings.ground or "").stem,
    }
