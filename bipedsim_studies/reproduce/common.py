"""What the cases of all papers share: figures to meet, the table of them, bodies, runs and pictures."""

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
from tqdm import tqdm

from bipedsim.analysis import aligned
from bipedsim.contact import mode_name
from bipedsim.control import Controller
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Integers
from bipedsim.recording import Recording
from bipedsim.sim import Observation, Simulator
from bipedsim.view import FOOT_COLOURS, foot_dash, picture

Result = TypeVar("Result")
"""What a case has measured."""
SomeSeries = TypeVar("SomeSeries", bound="Series")
BODIES = Path(__file__).parents[1] / "bodies"
MARK_COLOUR = "#777777"
"""Of instants and spans of time that are marked."""


@dataclass(frozen=True)
class Check:
    """A figure that a case must meet, or one that it only shows.

    Attributes:
        quantity: What was measured.
        expected: What it must be, in words; empty if nothing is asked of it.
        measured: The number.
        unit: Its unit.
        ok: Whether it is met.
    """

    quantity: str
    expected: str
    measured: float
    unit: str = ""
    ok: bool = True

    @classmethod
    def at_most(cls, quantity: str, measured: float, limit: float, unit: str = "") -> Check:
        """Return the check that ``measured`` does not exceed ``limit``."""
        return cls(quantity, f"<= {limit:g}", float(measured), unit, bool(measured <= limit))

    @classmethod
    def at_least(cls, quantity: str, measured: float, limit: float, unit: str = "") -> Check:
        """Return the check that ``measured`` is not below ``limit``."""
        return cls(quantity, f">= {limit:g}", float(measured), unit, bool(measured >= limit))

    @classmethod
    def near(cls, quantity: str, measured: float, expected: float, tolerance: float, unit: str = "") -> Check:
        """Return the check that ``measured`` is ``expected`` within ``tolerance``."""
        ok = bool(abs(measured - expected) <= tolerance)
        return cls(quantity, f"{expected:g} +- {tolerance:.2g}", float(measured), unit, ok)

    @classmethod
    def equal(cls, quantity: str, measured: float, expected: float, unit: str = "") -> Check:
        """Return the check that ``measured`` is ``expected``."""
        return cls(quantity, f"{expected:g}", float(measured), unit, bool(measured == expected))

    @classmethod
    def shown(cls, quantity: str, measured: float, unit: str = "") -> Check:
        """Return a figure of which nothing is asked."""
        return cls(quantity, "", float(measured), unit)


@dataclass(frozen=True)
class Outcome:
    """What a case found.

    Attributes:
        checks: The figures.
        draw: Draws the picture into an empty figure; None where there is nothing to draw.
        size: Of the picture [in].
        text: A table or remark to print above the figures.
    """

    checks: tuple[Check, ...]
    draw: Callable[[Figure], None] | None = None
    size: tuple[float, float] = (10.0, 7.0)
    text: str = ""


@dataclass(frozen=True)
class Case:
    """One experiment of a paper.

    Attributes:
        title: One line.
        run: Does it; its argument says whether to show progress.
    """

    title: str
    run: Callable[[bool], Outcome]


@dataclass(frozen=True)
class Paper:
    """A paper and its cases, by name.

    Attributes:
        reference: Authors, title, place, year.
        cases: In the order of the paper.
    """

    reference: str
    cases: Mapping[str, Case]

    def chosen(self, names: Sequence[str]) -> dict[str, Case]:
        """Return the cases called ``names``, or all of them for no name.

        Raises:
            UnknownNameError: No such case; the message lists them.
        """
        for name in names:
            if name not in self.cases:
                raise UnknownNameError("case", name, self.cases)
        return {name: self.cases[name] for name in names or self.cases}


def table(checks: Iterable[Check]) -> str:
    """Return the figures as text: quantity, expected, measured, ok."""
    rows = [("quantity", "expected", "measured", "ok")]
    for check in checks:
        unit = f" {check.unit}" if check.unit else ""
        verdict = ("yes" if check.ok else "NO") if check.expected else ""
        expected = f"{check.expected}{unit}" if check.expected else ""
        rows.append((check.quantity, expected, f"{check.measured:.6g}{unit}", verdict))
    return "\n".join(f"  {line}" for line in aligned(rows))


def as_json(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """Return the figures as JSON values; what is not finite is null."""
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


def save_picture(outcome: Outcome, title: str, path: Path) -> bool:
    """Write the picture of ``outcome`` to ``path`` and return whether there was one.

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
    """Run cases, print their figures unless ``quiet``, write their pictures to ``output`` and return it all as JSON.

    Raises:
        UnknownNameError: The paper has no such case.
        RecordingError: A picture cannot be written.
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
    """Return a paper's body by its folder's name, of another ``mass`` [kg] with the inertia in proportion if given."""
    robot = load_robot(BODIES / name)
    if mass is None:
        return robot
    joint = robot.soles[0].joint_id
    original = robot.model.inertias[joint]
    return robot.with_inertia(joint, pin.Inertia(mass, original.lever, original.inertia * (mass / original.mass)))


class Series(dict[str, Array]):
    """Arrays by name, a row per step each; ``run.height`` is ``run["height"]``."""

    @classmethod
    def of(cls: type[SomeSeries], rows: Iterable[Mapping[str, ArrayLike]]) -> SomeSeries:
        """Stack rows of the same names; each is copied when it comes, so that it may be a view."""
        copies = [{name: np.array(value) for name, value in row.items()} for row in rows]
        return cls({name: np.array([row[name] for row in copies]) for name in copies[0]})

    def __getattr__(self, name: str) -> Array:
        """Return the array ``name``."""
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
    """Reset the simulator and step it for ``duration`` [s]; yield the observation after every tick.

    Args:
        sim: The simulator; whoever iterates reads it.
        duration: [s].
        controller: Gives the torques, which are cut to the effort limits; none for no torques.
        start: Configuration and velocity to start from; the settled posture by default.
        label: Of the progress bar.
        progress: Whether to show it.
    """
    limit = sim.robot.effort_limit
    observation = sim.reset(*start)
    if controller is not None:
        controller.reset(observation)
    tau = np.zeros(sim.robot.nu)
    for _ in tqdm(range(round(duration / sim.control_dt)), desc=label, unit="tick", disable=not progress, leave=False):
        if controller is not None:
            tau = np.clip(controller.update(observation).tau_joint, -limit, limit)
        observation = sim.step(tau)
        yield observation


@dataclass(eq=False)
class Trace:
    """A run and its centre of mass.

    Attributes:
        recording: The run, a row per control tick.
        com, v_com: (n, 3) of the CoM in the world [m], [m/s], after each tick.
        a_com: (n, 3) change of ``v_com`` over each tick, per time [m/s^2].
        summary: Counters of the contact model.
    """

    recording: Recording
    com: Array
    v_com: Array
    a_com: Array
    summary: dict[str, int] = field(default_factory=dict)


def simulate(sim: Simulator, controller: Controller, duration: float, label: str = "", progress: bool = False) -> Trace:
    """Run ``controller`` on ``sim`` from its settled posture for ``duration`` [s], within the effort limits."""
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
) -> Callable[[bool], Outcome]:
    """Return the run of a case that measures once, and judges, draws and describes what was found."""

    def run(progress: bool) -> Outcome:
        result = measure(progress)
        picture_of = None if draw is None else lambda figure: draw(figure, result)
        return Outcome(tuple(checks(result)), picture_of, size, text(result) if text else "")

    return run


def label(ax: Axes, title: str = "", x: str = "", y: str = "", legend: Any = "", **settings: Any) -> None:
    """Title an axis, name its quantities, and place its legend.

    Args:
        ax: The axis.
        title, x, y: Texts above it, below it and at its side; what is empty stays as it is.
        legend: Its place in matplotlib's words or "above" for a row over the right end; none by default.
        settings: More of ``Axes.set``, such as ``xlim``.
    """
    if title:
        ax.set_title(title, pad=3)
    texts = {"xlabel": x, "ylabel": y}
    ax.set(**{name: text for name, text in texts.items() if text}, **settings)
    if legend == "above":
        ax.legend(ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    elif legend:
        ax.legend(loc=legend)


def foot_looks(width: float) -> list[dict[str, Any]]:
    """Return the look of the curves of two feet, by lines of ``width`` [pt]."""
    return [{"color": FOOT_COLOURS[k], "linestyle": foot_dash(k), "linewidth": width} for k in range(2)]


def draw_modes(
    ax: Axes,
    t: Array,
    mode: Integers,
    n_vertices: int,
    looks: Sequence[dict[str, Any]],
    rows: Iterable[int] = (),
) -> None:
    """Draw the contact modes (n, K) of feet with ``n_vertices`` each as staircases, one of ``looks`` per foot.

    The axis names only the modes that occur or are in ``rows``, from none to face.
    """
    present = np.union1d(mode, np.array([*rows], dtype=np.int64))
    for k, look in enumerate(looks):
        ax.step(t, np.searchsorted(present, mode[:, k]), where="post", **look)
    names = [mode_name(int(value), False, n_vertices).removesuffix(" stick") for value in present]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(-0.4, len(names) - 0.6)
