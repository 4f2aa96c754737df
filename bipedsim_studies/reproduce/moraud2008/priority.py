"""Fig. 4: which rule wins where two of them disagree, on one foot whose solution is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.analysis import aligned
from bipedsim.contact import ContactResult, mode_name
from bipedsim.contact.selection import PUBLISHED, REVISED, Selection, Settings, choose, nearest_feature, nearest_mode
from bipedsim.dynamics import Projection
from bipedsim.model import Sole
from bipedsim.numerics import Array
from bipedsim_studies.reproduce.common import Check, study

H, D, TOLERANCE = 1e-3, 1e-3, 1e-9
"""Step [s], geometric threshold of the paper [m], and a CoP this far outside is on the edge [m]."""
POINT = np.zeros((1, 2))
SOLE = np.array([[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]])
NONE, VERTEX, FACE, FRONT = 0, 1, 9, 8
"""Modes: none, the vertex of a point foot; face and front edge of the rectangle."""
VERTICES = (4, 8, 16, 32)


@dataclass(frozen=True)
class Conflict:
    """A state of one foot about which two rules disagree.

    Attributes:
        wins, loses: The rules, and what they ask for.
        state: The state in words.
        mode: Mode that was solved for.
        expected: Mode that the printed rules must choose.
        vertices: (N, 2) of the foot [m].
        height: Of each vertex [m].
        speed: Normal velocity of the foot before and after the step [m/s].
        impulse: Normal impulse of the step [N.s].
        cop: Where it acts [m].
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
        """The two rules."""
        return f"{self.wins} > {self.loses}"


FREE, CLAMP, EDGE = "negative force: free", "kinematic: clamp", "CoP: front edge"
PULLED = ((0.0, 0.0), -0.1)
"""At rest, and pulled down."""
TIPS = ((0.0, 0.0), 0.1, (0.101, 0.0))
"""At rest, and carried 1 mm before the front edge."""
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
    """Return the mode that the rules choose (``PUBLISHED`` or ``REVISED``)."""
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
    """Whether one violation of a rule outweighs all others of the next rule on a foot of ``n`` vertices.

    Vertex 0 must be free by the heavier rule, all others clamped by the next one: the face violates the first once, the
    edge from 1 to 2 the second n - 3 times.

    Args:
        n: Number of vertices, at least 4.
        heavier: 0 for a_cop against a_g, 1 for a_g against a_nf, 2 for a_nf against a_k.
    """
    perfect = np.ones(n, dtype=np.int64)
    perfect[0] = 0
    cost = np.full(n, float(n) ** -(heavier + 1))
    cost[0] = float(n) ** -heavier
    return bool(nearest_mode(2 * n + 1, n, perfect, cost) == n + 2)


Choices = list[tuple[int, int]]


def measure(progress: bool = False) -> Choices:
    """Return what the printed and the revised rules choose in every conflict."""
    return [(chosen(conflict, PUBLISHED), chosen(conflict, REVISED)) for conflict in CONFLICTS]


def checks(choices: Choices) -> Iterator[Check]:
    """Return the figures of Fig. 4."""
    for conflict, modes in zip(CONFLICTS, choices, strict=True):
        yield Check.equal(conflict.name, float(modes[0] == conflict.expected), 1.0)
    pairs = [outweighs(n, heavier) for n in VERTICES for heavier in range(3)]
    yield Check.equal("one violation outweighs those of the next rule, rules and feet", sum(pairs), 12)


def text(choices: Choices) -> str:
    """Return the table of the conflicts with what printed and revised rules choose."""
    rows: list[tuple[str, ...]] = [("rule that wins", "rule that loses", "state", "printed rules", "bipedsim's rules")]
    for conflict, modes in zip(CONFLICTS, choices, strict=True):
        names = [mode_name(mode, False, len(conflict.vertices)).removesuffix(" stick") for mode in modes]
        rows.append((conflict.wins, conflict.loses, conflict.state, *names))
    return "".join(f"  {line}\n" for line in aligned(rows))


case = study(measure, checks, text=text)
