"""Provide the common parts of all cases: checks, their table, bodies, runs and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pinocchio as pin
from matplotlib.axes import Axes as Axes
from matplotlib.figure import Figure as Figure
from numpy.typing import ArrayLike

from bipedsim.analysis import aligned
from bipedsim.config import ProgressBar
from bipedsim.contact import mode_parts
from bipedsim.control import Controller
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Integers
from bipedsim.recording import Recording
from bipedsim.sim import Observation, Simulator
from bipedsim.view import FOOT_COLOURS, foot_dash, picture, time_axis

Result = TypeVar("Result")
"""Type of the measurements of a case."""
SomeSeries = TypeVar("SomeSeries", bound="Series")
BODIES = Path(__file__).parents[1] / "bodies"
MARK_COLOUR = "#777777"
"""Colour of marked instants and intervals."""


@dataclass(frozen=True)
class Check:
    """Measured quantity of a case, with or without a required value.

    Attributes:
        quantity: Name of the quantity.
        expected: Required value or bound as text; empty if there is no requirement.
        measured: Measured value.
        unit: Unit of the value.
        ok: Whether the requirement is met.
    """

    quantity: str
    expected: str
    measured: float
    unit: str = ""
    ok: bool = True

    @classmethod
    def at_most(cls, quantity: str, measured: float, limit: float, unit: str = "") -> Check:
        """Return a check that ``measured`` does not exceed ``limit``."""
        return cls(quantity, f"<= {limit:g}", float(measured), unit, bool(measured <= limit))

    @classmethod
    def at_least(cls, quantity: str, measured: float, limit: float, unit: str = "") -> Check:
        """Return a check that ``measured`` is not below ``limit``."""
        return cls(quantity, f">= {limit:g}", float(measured), unit, bool(measured >= limit))

    @classmethod
    def near(cls, quantity: str, measured: float, expected: float, tolerance: float, unit: str = "") -> Check:
        """Return a check that ``measured`` equals ``expected`` within ``tolerance``."""
        ok = bool(abs(measured - expected) <= tolerance)
        return cls(quantity, f"{expected:g} +- {tolerance:.2g}", float(measured), unit, ok)

    @classmethod
    def equal(cls, quantity: str, measured: float, expected: float, unit: str = "") -> Check:
        """Return a check that ``measured`` equals ``expected``."""
        return cls(quantity, f"{expected:g}", float(measured), unit, bool(measured == expected))

    @classmethod
    def shown(cls, quantity: str, measured: float, unit: str = "") -> Check:
        """Return a quantity without a requirement."""
        return cls(quantity, "", float(measured), unit)


@dataclass(frozen=True)
class CaseOutcome:
    """Outcome of a case.

    Attributes:
        checks: Measured quantities.
        draw: Draws into an empty figure; None if the case has no figure.
        size: Size of the figure [in].
        text: Table or remark to print above the checks.
    """

    checks: tuple[Check, ...]
    draw: Callable[[Figure], None] | None = None
    size: tuple[float, float] = (10.0, 7.0)
    text: str = ""


@dataclass(frozen=True)
class Case:
    """Experiment of a paper.

    Attributes:
        title: Title in one line.
        run: Runs the experiment; its argument is whether to show progress.
    """

    title: str
    run: Callable[[bool], CaseOutcome]


@dataclass(frozen=True)
class Paper:
    """Paper with its cases by name.

    Attributes:
        reference: Authors, title, venue and year.
        cases: Cases in the order of the paper.
    """

    reference: str
    cases: Mapping[str, Case]

    def chosen(self, names: Sequence[str]) -> dict[str, Case]:
        """Return the cases with the given ``names``, or all cases if there are none.

        Raises:
            UnknownNameError: The paper has no such case; the message lists all names.
        """
        for name in names:
            if name not in self.cases:
                raise UnknownNameError("case", name, self.cases)
        return {name: self.cases[name] for name in names or self.cases}


def table(checks: Iterable[Check]) -> str:
    """Return the checks as a text table: quantity, expected, measured, ok."""
    rows = [("quantity", "expected", "measured", "ok")]
    for check in checks:
        unit = f" {check.unit}" if check.unit else ""
        verdict = ("yes" if check.ok else "NO") if check.expected else ""
        expected = f"{check.expected}{unit}" if check.expected else ""
        rows.append((check.quantity, expected, f"{check.measured:.6g}{unit}", verdict))
    return "\n".join(f"  {line}" for line in aligned(rows))


def as_json(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """Return the checks as JSON values; values that are not finite become null."""
    return [
        {
            "quantity": check.quantity,
            "expected": check.expected or None,
            "measured": check.measured if math.isfinite(check.measured) else None,
            "unit": check.unit or None,
            "ok": check.ok,
        }
        for check in checks
    ]


def save_picture(outcome: CaseOutcome, title: str, path: Path) -> bool:
    """Write the figure of ``outcome`` to ``path`` and return whether it has one.

    Raises:
        RecordingError: The file cannot be written.
    """
    if outcome.draw is None:
        return False
    with picture(path, outcome.size, title) as figure:
        outcome.draw(figure)
    return True


def reproduce(
    paper: Paper, names: Sequence[str], output: Path, progress: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Run cases, write their figures to ``output`` and return the outcomes as JSON; print them unless ``quiet``.

    Raises:
        UnknownNameError: The paper has no such case.
        RecordingError: A figure cannot be written.
    """
    results: dict[str, Any] = {}
    for name, case in paper.chosen(names).items():
        outcome = case.run(progress)
        path = output / f"{name}.png"
        drawn = save_picture(outcome, f"{name}: {case.title}", path)
        results[name] = {
            "title": case.title,
            "ok": all(check.ok for check in outcome.checks),
            "figures": as_json(outcome.checks),
            "picture": str(path) if drawn else None,
        }
        if not quiet:
            parts = [f"{name}: {case.title}", outcome.text, table(outcome.checks), f"  wrote {path}" if drawn else ""]
            print("\n".join(part for part in parts if part), end="\n\n", flush=True)
    return {"reference": paper.reference, "ok": all(case["ok"] for case in results.values()), "cases": results}


def body(name: str, mass: float | None = None) -> Robot:
    """Return a paper's body by its folder name; a different ``mass`` [kg] scales its inertia in proportion."""
    robot = load_robot(BODIES / name)
    if mass is None:
        return robot
    joint = robot.soles[0].joint_id
    original = robot.model.inertias[joint]
    return robot.with_inertia(joint, pin.Inertia(mass, original.lever, original.inertia * (mass / original.mass)))


class Series(dict[str, Array]):
    """Arrays by name with one row per step; ``run.height`` is ``run["height"]``."""

    @classmethod
    def of(cls: type[SomeSeries], rows: Iterable[Mapping[str, ArrayLike]]) -> SomeSeries:
        """Stack rows with the same names; each value is copied at once, so rows may contain views."""
        copies = [{name: np.array(value) for name, value in row.items()} for row in rows]
        return cls({name: np.array([row[name] for row in copies]) for name in copies[0]})

    def __getattr__(self, name: str) -> Array:
        """Return the array called ``name``."""
        if name not in self:
            raise AttributeError(f"no series {name!r}; there are {', '.join(self)}")
        return self[name]

    def since(self: SomeSeries, row: int) -> SomeSeries:
        """Return all arrays from ``row`` on."""
        return type(self)({name: values[row:] for name, values in self.items()})


def steps(
    sim: Simulator,
    duration: float,
    controller: Controller | None = None,
    start: tuple[Array, Array] | tuple[()] = (),
    label: str = "",
    progress: bool = False,
) -> Iterator[Observation]:
    """Reset the simulator and step it for ``duration`` [s]; yield the observation after each tick.

    Args:
        sim: The simulator, which the caller may read between the ticks.
        duration: Duration [s].
        controller: Computes the torques, which are clipped to the effort limits; None for no torques.
        start: Initial configuration and velocity; the settled posture by default.
        label: Label of the progress bar.
        progress: Whether to show the progress bar.
    """
    limit = sim.robot.effort_limit
    observation = sim.reset(*start)
    if controller is not None:
        controller.reset(observation)
    tau = np.zeros(sim.robot.nu)
    for _ in ProgressBar(range(round(duration / sim.control_dt)), desc=label, unit="tick", disable=not progress):
        if controller is not None:
            tau = np.clip(controller.update(observation).tau_joint, -limit, limit)
        observation = sim.step(tau)
        yield observation


@dataclass(eq=False)
class Trace:
    """Run with its centre of mass.

    Attributes:
        recording: Recording with one row per control tick.
        com, v_com: (n, 3) CoM in the world [m], and its velocity [m/s], after each tick.
        a_com: (n, 3) change of ``v_com`` over each tick, divided by the tick [m/s^2].
        summary: Counters of the contact model.
    """

    recording: Recording
    com: Array
    v_com: Array
    a_com: Array
    summary: dict[str, int] = field(default_factory=dict)


def simulate(sim: Simulator, controller: Controller, duration: float, label: str = "", progress: bool = False) -> Trace:
    """Run ``controller`` on ``sim`` from the settled posture for ``duration`` [s], within the effort limits."""
    robot = sim.robot
    data = robot.model.createData()
    builder = Recording.Builder(robot, round(duration / sim.control_dt))
    com, v_com = [], [np.zeros(3)]
    for observation in steps(sim, duration, controller, label=label, progress=progress):
        builder.append(observation.t, observation, sim.contact, sim.ground_truth(), sim.command)
        com.append(pin.centerOfMass(robot.model, data, sim.q, sim.v).copy())
        v_com.append(data.vcom[0].copy())
    counters = {"state_changes": sim.contact.state_changes, "unresolved_steps": sim.contact.unresolved}
    speeds = np.array(v_com)
    return Trace(builder.build(), np.array(com), speeds[1:], np.diff(speeds, axis=0) / sim.control_dt, counters)


def study(
    measure: Callable[[bool], Result],
    checks: Callable[[Result], Iterable[Check]],
    draw: Callable[[Figure, Result], None] | None = None,
    size: tuple[float, float] = (10.0, 7.0),
    text: Callable[[Result], str] | None = None,
) -> Callable[[bool], CaseOutcome]:
    """Return the run of a case: it measures once, then checks, draws and describes the result."""

    def run(progress: bool) -> CaseOutcome:
        result = measure(progress)
        picture_of = None if draw is None else lambda figure: draw(figure, result)
        return CaseOutcome(tuple(checks(result)), picture_of, size, text(result) if text else "")

    return run


def label(
    ax: Axes, title: str = "", x: str = "", y: str = "", legend: Any = "", time: str = "", **settings: Any
) -> None:
    """Set title, axis labels and legend of an axis.

    Args:
        ax: The axis.
        title, x, y: Title, x label and y label; empty texts are not set.
        legend: Location in matplotlib's words, or "above" for a row above the right end; no legend by default.
        time: Label of an x axis that is time, instead of ``x``.
        settings: Further arguments of ``Axes.set``, such as ``xlim``.
    """
    if title:
        ax.set_title(title, pad=3)
    texts = {"xlabel": x, "ylabel": y}
    ax.set(**{name: text for name, text in texts.items() if text}, **settings)
    if time:
        time_axis(ax, text=time)
    if legend == "above":
        ax.legend(ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    elif legend:
        ax.legend(loc=legend)


def foot_looks(width: float) -> list[dict[str, Any]]:
    """Return the line styles of two feet, with lines of ``width`` [pt]."""
    return [{"color": FOOT_COLOURS[k], "linestyle": foot_dash(k), "linewidth": width} for k in range(2)]


def draw_modes(
    ax: Axes,
    t: Array,
    mode: Integers,
    n_vertices: int,
    looks: Sequence[dict[str, Any]],
    rows: Iterable[int] = (),
) -> None:
    """Draw the contact modes (n, K) of feet with ``n_vertices`` each as staircases, with one of ``looks`` per foot.

    The axis names only the modes that occur or are in ``rows``, from none to face.
    """
    present = np.union1d(mode, np.array([*rows], dtype=np.int64))
    for k, look in enumerate(looks):
        ax.step(t, np.searchsorted(present, mode[:, k]), where="post", **look)
    names = [" ".join(mode_parts(int(value), n_vertices)) for value in present]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(-0.4, len(names) - 0.6)
