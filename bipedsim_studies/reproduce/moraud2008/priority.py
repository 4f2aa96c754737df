"""Check which rule has priority if two rules disagree, on one foot with a given solution (Fig. 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.analysis import aligned
from bipedsim.contact import ContactResult, mode_parts
from bipedsim.contact.selection import PUBLISHED, REVISED, Selection, Settings, choose, nearest_feature, nearest_mode
from bipedsim.dynamics import Projection
from bipedsim.model import Sole
from bipedsim.numerics import Array
from bipedsim_studies.reproduce.common import Check, study

H, D, TOLERANCE = 1e-3, 1e-3, 1e-9
"""Step [s], geometric threshold of the paper [m], and distance outside at which a CoP counts as on the edge [m]."""
POINT = np.zeros((1, 2))
SOLE = np.array([[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]])
NONE, VERTEX, FACE, FRONT = 0, 1, 9, 8
"""Modes: none, the vertex of a point foot, and face and front edge of the rectangle."""
VERTICES = (4, 8, 16, 32)


@dataclass(frozen=True)
class Conflict:
    """State of one foot in which two rules disagree.

    Attributes:
        wins, loses: The two rules and their demands.
        state: Description of the state.
        mode: Mode of the given solution.
        expected: Mode that the printed rules must choose.
        vertices: (N, 2) vertices of the foot [m].
        height: Height of each vertex [m].
        speed: Normal velocity of the foot before and after the step [m/s].
        impulse: Normal impulse of the step [N.s].
        cop: Position of the impulse on the sole [m].
    """

    wins: str
    loses: str
    state: str
    mode: int
    expected: int
    vertices: Array
    height: tuple[float, ...]
    speed: tuple[float, float] = (0.0, 0.0)
    impulse: float = 0.0
    cop: tuple[float, float] = (0.0, 0.0)

    @property
    def name(self) -> str:
        """Names of the two rules."""
        return f"{self.wins} > {self.loses}"


FREE, CLAMP, EDGE = "negative force: free", "kinematic: clamp", "CoP: front edge"
PULLED = ((0.0, 0.0), -0.1)
"""Foot at rest, pulled downwards."""
TIPS = ((0.0, 0.0), 0.1, (0.101, 0.0))
"""Foot at rest, with the CoP 1 mm beyond the front edge."""
HEEL_LOW = (0.0, -2e-3, -2e-3, 0.0)
CONFLICTS = (
    Conflict("geometric: clamp", FREE, "clamped 2 mm below, pulled down", VERTEX, VERTEX, POINT, (-2e-3,), *PULLED),
    Conflict("geometric: free", CLAMP, "free 2 mm above, coming down", NONE, NONE, POINT, (2e-3,), (-0.05, -0.05)),
    Conflict(FREE, CLAMP, "clamped on the ground at rest, pulled down", VERTEX, NONE, POINT, (0.0,), *PULLED),
    Conflict(CLAMP, "minimal: free", "free on the ground, coming down", NONE, VERTEX, POINT, (0.0,), (-0.01, -0.01)),
    Conflict(
        "minimal: free", "nothing: clamp", "free on the ground, separating", NONE, NONE, POINT, (0.0,), (0.0, 0.01)
    ),
    Conflict(EDGE, "kinematic: face", "face at rest, CoP 1 mm before the toes", FACE, FRONT, SOLE, (0.0,) * 4, *TIPS),
    Conflict(EDGE, "geometric: face", "heel 2 mm below, CoP 1 mm before the toes", FACE, FRONT, SOLE, HEEL_LOW, *TIPS),
)


def chosen(conflict: Conflict, rules: int) -> int:
    """Return the mode that the rules (``PUBLISHED`` or ``REVISED``) choose."""
    vertices = conflict.vertices
    n = len(vertices)
    projection = Projection.of_soles((Sole("foot", "foot", 1, pin.SE3.Identity(), vertices, 1.0, 1.0),))
    projection.offsets[0, :n, :2] = vertices
    projection.w_before[2] = conflict.speed[0]
    settings = Settings(H, gamma=0.2, threshold=D, tolerance=TOLERANCE, rules=rules)
    foot = Selection.of_feet(1, projection.vertices.shape[1], ContactResult.empty(1), settings)
    trial = foot.trial
    clamped = n if conflict.mode else 0
    x, y = conflict.cop
    trial.mode[0] = conflict.mode
    foot.scratch.heights[0, :n] = conflict.height
    trial.w_next[2] = conflict.speed[1]
    trial.impulse[0] = [0.0, 0.0, conflict.impulse, y * conflict.impulse, -x * conflict.impulse, 0.0]
    trial.cop[0] = conflict.cop
    trial.outside[0] = nearest_feature(vertices, n, (0, clamped), x, y, TOLERANCE)[2]
    choose(projection, foot)
    return int(trial.chosen[0])


def outweighs(n: int, heavier: int) -> bool:
    """Return whether one violation of a rule outweighs all violations of the next rule, on a foot of ``n`` vertices.

    Vertex 0 must be free by the heavier rule, and all others clamped by the next one. The face then violates the
    heavier rule once. The edge from 1 to 2 violates the next rule n - 3 times.

    Args:
        n: Number of vertices, at least 4.
        heavier: Index of the heavier rule: 0 for a_cop over a_g, 1 for a_g over a_nf, 2 for a_nf over a_k.
    """
    perfect = np.ones(n, dtype=np.int64)
    perfect[0] = 0
    cost = np.full(n, float(n) ** -(heavier + 1))
    cost[0] = float(n) ** -heavier
    return bool(nearest_mode(2 * n + 1, n, perfect, cost) == n + 2)


Choices = list[tuple[int, int]]


def measure(progress: bool = False) -> Choices:
    """Return the choices of the printed and the revised rules in each conflict."""
    return [(chosen(conflict, PUBLISHED), chosen(conflict, REVISED)) for conflict in CONFLICTS]


def checks(choices: Choices) -> Iterator[Check]:
    """Yield the checks of Fig. 4."""
    for conflict, modes in zip(CONFLICTS, choices, strict=True):
        yield Check.equal(conflict.name, float(modes[0] == conflict.expected), 1.0)
    pairs = [outweighs(n, heavier) for n in VERTICES for heavier in range(3)]
    yield Check.equal("one violation outweighs those of the next rule, rules and feet", sum(pairs), 12)


def text(choices: Choices) -> str:
    """Return the table of conflicts, with the choices of printed and revised rules."""
    rows: list[tuple[str, ...]] = [("rule that wins", "rule that loses", "state", "printed rules", "bipedsim's rules")]
    for conflict, modes in zip(CONFLICTS, choices, strict=True):
        names = [" ".join(mode_parts(mode, len(conflict.vertices))) for mode in modes]
        rows.append((conflict.wins, conflict.loses, conflict.state, *names))
    return "".join(f"  {line}\n" for line in aligned(rows))


case = study(measure, checks, text=text)
