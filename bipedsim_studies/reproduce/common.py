"""What the cases of all papers share: figures to meet, the table of them, pictures, and a run with its CoM."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from tqdm import tqdm

from bipedsim.contact import mode_name
from bipedsim.control import Controller
from bipedsim.errors import UnknownNameError
from bipedsim.recording import Recording
from bipedsim.sim import Simulator
from bipedsim.view import picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


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


def at_most(quantity: str, measured: float, limit: float, unit: str = "") -> Check:
    """Return the check that ``measured`` does not exceed ``limit``."""
    return Check(quantity, f"<= {limit:g}", float(measured), unit, bool(measured <= limit))


def at_least(quantity: str, measured: float, limit: float, unit: str = "") -> Check:
    """Return the check that ``measured`` is not below ``limit``."""
    return Check(quantity, f">= {limit:g}", float(measured), unit, bool(measured >= limit))


def near(quantity: str, measured: float, expected: float, tolerance: float, unit: str = "") -> Check:
    """Return the check that ``measured`` is ``expected`` within ``tolerance``."""
    ok = bool(abs(measured - expected) <= tolerance)
    return Check(quantity, f"{expected:g} +- {tolerance:.2g}", float(measured), unit, ok)


def equal(quantity: str, measured: float, expected: float, unit: str = "") -> Check:
    """Return the check that ``measured`` is ``expected``."""
    return Check(quantity, f"{expected:g}", float(measured), unit, bool(measured == expected))


def shown(quantity: str, measured: float, unit: str = "") -> Check:
    """Return a figure of which nothing is asked."""
    return Check(quantity, "", float(measured), unit)


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
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join(
        "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


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
    found: dict[str, Any] = {}
    for name, case in paper.chosen(names).items():
        outcome = case.run(progress)
        path = output / f"{name}.png"
        drawn = save_picture(outcome, f"{name}: {case.title}", path)
        found[name] = {
            "title": case.title,
            "ok": all(check.ok for check in outcome.checks),
            "figures": as_json(outcome.checks),
            "picture": str(path) if drawn else None,
        }
        if not quiet:
            parts = [f"{name}: {case.title}", outcome.text, table(outcome.checks), f"  wrote {path}" if drawn else ""]
            print("\n".join(part for part in parts if part), end="\n\n", flush=True)
    return {"reference": paper.reference, "ok": all(case["ok"] for case in found.values()), "cases": found}


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
    ticks = round(duration / sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    builder = Recording.Builder(robot, ticks)
    com, v_com = np.zeros((ticks + 1, 3)), np.zeros((ticks + 1, 3))
    com[0] = pin.centerOfMass(robot.model, data, sim.q, sim.v)
    for tick in tqdm(range(ticks), desc=label, unit="tick", disable=not progress, leave=False):
        tau = np.clip(controller.update(observation).tau_joint, -robot.effort_limit, robot.effort_limit)
        observation = sim.step(tau)
        builder.append(observation.t, observation, sim.contact, sim.ground_truth())
        com[tick + 1] = pin.centerOfMass(robot.model, data, sim.q, sim.v)
        v_com[tick + 1] = data.vcom[0]
    counters = {"state_changes": sim.contact.state_changes, "unresolved_steps": sim.contact.unresolved}
    return Trace(builder.build(), com[1:], v_com[1:], np.diff(v_com, axis=0) / sim.control_dt, counters)


def draw_modes(
    ax: Axes,
    t: Array,
    mode: NDArray[np.int64],
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
