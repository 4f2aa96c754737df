"""One run of a simulator, tick by tick, for the loops around it: headless runs, studies and ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bipedsim.analysis import Verdict
from bipedsim.config import flow_text, is_path
from bipedsim.model import start_configuration
from bipedsim.numerics import Array
from bipedsim.runs.faults import JOINTS, FaultSchedule
from bipedsim.runs.pushes import Push, PushSchedule
from bipedsim.runs.replay import describe_action, describe_move, describe_push, describe_run
from bipedsim.runs.saved_step import watch
from bipedsim.sim import Observation, Simulator, placed


class Rollout:
    """Run a simulator with pushes, faults and monitors; the loop around it supplies the commands.

    A loop adds its source of commands, its clock, and its sink of observations. Pushes and monitors are participants of
    the simulator. A rollout itself has only the faults between simulator and controller, and the outcome for the robot.

    Args:
        sim: The simulator.
        pushes: Scheduled pushes.
        faults: Injected faults of sensors and commands.
        log: Called with a line for each kind of violation of the physics; by default violations are only counted.
        step_file: File for the first step that violates the physics; by default a temporary one.
        on_event: Called with each push, move of objects and action of the gantry, in the form that replay reads.

    Attributes:
        sim, faults: As given.
        verdict: Outcome of the run for the robot.
        monitors: Monitors of the physics.
        measured: The last observation of the robot's sensors.
        observation: The observation that reaches the controller; it differs from ``measured`` by faults only.
    """

    def __init__(
        self,
        sim: Simulator,
        pushes: Iterable[Push],
        faults: FaultSchedule,
        log: Callable[[str], None] | None = None,
        step_file: Path | None = None,
        on_event: Callable[[dict[str, Any]], None] = lambda _event: None,
    ) -> None:
        self.sim = sim
        self.faults = faults
        self.verdict = Verdict(sim, tuple(map(str, faults.faults)))
        self.monitors = watch(sim, log, step_file)
        sim.add(PushSchedule(pushes))
        sim.pushes.on_push = lambda *push: on_event({"push": describe_push(sim.t, *push)})
        if sim.gantry is not None:
            sim.gantry.on_action = lambda *action: on_event({"gantry_action": describe_action(*action)})
        if sim.objects is not None:
            sim.objects.on_move = lambda states: on_event({"move": describe_move(sim.t, states)})
        self.measured = self.observation = sim.sensors.observation
        self._changes = self._unresolved = 0

    def warm_up(self, loops: bool = False, events: bool = True) -> None:
        """Load or compile all kernels; see :meth:`Simulator.warm_up`."""
        self.sim.warm_up(loops, events)
        self.verdict.warm_up()

    def begin(self, posture: str, height: float) -> Observation:
        """Go to t = 0 in a posture on the ground, or in the gantry if there is one; return the first observation.

        Args:
            posture: Name of a posture; see :func:`start_configuration`.
            height: Height of the soles above the ground [m].

        Raises:
            ConfigError: The robot cannot start there; nothing has changed.
        """
        sim = self.sim
        q = start_configuration(sim.robot, posture)
        if sim.robot.free_flyer:
            q = placed(sim, q)
            q[2] += height + (0.0 if sim.config.gantry is None else sim.config.gantry.clearance)
        return self.start(q)

    def start(self, q: Array, v: Array | None = None) -> Observation:
        """Go to t = 0 at (q, v), (nq,) and (nv,), and return the first observation.

        Raises:
            ConfigError: The robot cannot start there; nothing has changed.
        """
        changes, unresolved = self.state_changes, self.unresolved_steps
        self.measured = self.observation = self.sim.reset(q, v)
        self._changes, self._unresolved = changes, unresolved
        self.verdict.restart()
        self.faults.restart(self.measured)
        return self.observation

    def described(self) -> dict[str, Any]:
        """Return everything that is needed to simulate this run again from its start, see :func:`describe_run`."""
        return describe_run(self.sim, self.faults.faults)

    def tick(self, command: Array, idle: bool = False) -> Observation:
        """Take a control tick and return the observation that reaches the controller.

        Args:
            command: Torques (nu,) [N.m], or an impedance (6, nu) as :meth:`Command.packed` returns it.
            idle: Whether commands fail to arrive.

        Raises:
            ConfigError: The simulator refuses the command; nothing has changed.
            DivergenceError: The simulation left the finite numbers.
        """
        faults = self.faults
        if faults.faults:
            self.measured = self.sim.step(faults.drive(self.sim.t, command))
            self.observation = faults.sense(self.measured)
        else:
            self.measured = self.observation = self.sim.step(command)
        self.verdict.tick(idle)
        return self.observation

    @property
    def is_measured(self) -> bool:
        """Whether the last measurements reached the controller; an injected fault may lose them."""
        return self.faults.sent[JOINTS]

    def hears(self) -> bool:
        """Return whether a command that arrives now reaches the drives; a fault may lose it, which is counted."""
        return self.faults.hears(self.sim.t)

    @property
    def state_changes(self) -> int:
        """Changes of contact modes in all steps, over all starts."""
        return self._changes + self.sim.contact.state_changes

    @property
    def unresolved_steps(self) -> int:
        """Steps without a solution of the contact model, over all starts."""
        return self._unresolved + self.sim.contact.unresolved

    def outcome(self, until: float | None = None) -> dict[str, Any]:
        """Return the figures of physics and robot, up to the time ``until`` [s]."""
        return {"physics": self.monitors.figures(), **self.verdict.figures(until)}


def label_of(spec: str | Mapping[str, Any]) -> str:
    """Return the label of a scenario or ground in figures: its name, that of its file, or its mapping in braces."""
    text = spec if isinstance(spec, str) else flow_text(spec)
    return Path(text).stem if is_path(text) else text
