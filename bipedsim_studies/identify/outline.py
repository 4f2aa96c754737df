"""Estimate the outline and the height of a sole where a foot turns about an edge, and bounds of it elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.analysis import aligned
from bipedsim.errors import some
from bipedsim.model import Robot, Sole
from bipedsim.numerics import Array, Flags
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.feet import TURNS, Feet, throughout
from bipedsim_studies.identify.fit import INDEPENDENT, fitted, quantiles

ALONG = 0.3
"""Largest angular velocity across an edge, as a share of that about it, at which a foot turns about this edge."""
HEIGHT = 5e-3
"""Standard deviation of the height of a sole, as expected before any data [m]."""
ANYWHERE = 1.0
"""Standard deviation of the position of an edge, as expected before any data [m]: none, for a foot."""
SHOWN_BY = {
    "front": "lean forward until the heels lift",
    "back": "lean back until the toes lift",
    "left": "rock to the left until the feet tilt",
    "right": "rock to the right until the feet tilt",
}
"""Edge to the motion that shows it."""
SHORTEST = 1e-3
"""Length of an edge [m] below which the edges next to it cut it off, so that the measured edges are no polygon."""
_OTHER = "rock until the feet tilt over it"
_DIRECTIONS = ("front", "left", "back", "right")
_STRAIGHT = math.radians(20.0)


@dataclass(frozen=True)
class Edge:
    """Edge of a sole.

    Attributes:
        foot: The foot.
        name: Direction of its outward normal: front, left, back, right, or an angle from the front.
        described: Distance from the origin of the sole frame along this normal, in the description [m].
        bound: Lower bound of this distance: the outermost centre of pressure [m]; NaN if the foot carried no load, or
            its sensor does not measure the centre of pressure.
        measured: The distance, and the half width of its 95 % interval [m]; None if the foot did not turn about it.
        obstacle: Distance about which the foot turned although a centre of pressure was farther out [m]: an edge of the
            ground, not of the sole; None if there is none.
    """

    foot: str
    name: str
    described: float
    bound: float
    measured: tuple[float, float] | None
    obstacle: float | None = None

    @property
    def best(self) -> float:
        """Distance as measured; else as described, or as the bound if that is larger [m]."""
        return self.measured[0] if self.measured else float(np.fmax(self.described, self.bound))


@dataclass(frozen=True, eq=False)
class Outline:
    """Sole of a foot.

    Attributes:
        sole: The sole as described.
        edges: Its edges, in the order of its vertices.
        height: Height of the true sole above the described one along its normal, and the half width of its 95 %
            interval [m]; None if the foot turned about no edge.
    """

    sole: Sole
    edges: tuple[Edge, ...]
    height: tuple[float, float] | None

    @property
    def vertices(self) -> Array | None:
        """Vertices (N, 2) of the sole with the edges as measured [m]; None if an edge would be shorter than 1 mm."""
        normals, _ = _edges(self.sole)
        before = np.roll(normals, 1, axis=0)
        distances = np.array([edge.best for edge in self.edges])
        pairs = np.stack([before, normals], axis=1)
        sides = np.stack([np.roll(distances, 1), distances], axis=1)
        vertices = np.linalg.solve(pairs, sides[..., None])[..., 0]
        along = np.stack([-normals[:, 1], normals[:, 0]], axis=1)
        lengths = np.einsum("ij,ij->i", np.roll(vertices, -1, axis=0) - vertices, along)
        return np.asarray(vertices) if lengths.min() > SHORTEST else None

    def as_json(self) -> dict[str, Any]:
        """Return the sole as JSON values."""
        return {
            "foot": self.sole.name,
            "height": None if self.height is None else {"value": self.height[0], "half_width": self.height[1]},
            "edges": [
                {
                    "edge": edge.name,
                    "described": edge.described,
                    "at_least": edge.bound if math.isfinite(edge.bound) else None,
                    "value": None if edge.measured is None else edge.measured[0],
                    "half_width": None if edge.measured is None else edge.measured[1],
                    "obstacle": edge.obstacle,
                }
                for edge in self.edges
            ],
        }


def outlines_text(outlines: Sequence[Outline]) -> Iterator[str]:
    """Yield the edges of all soles as lines of text, and the motions that show the others."""
    rows: list[tuple[str, ...]] = [("foot", "edge", "described", "measured")]
    for outline in outlines:
        for edge in outline.edges:
            if edge.measured is not None:
                value = f"{1e3 * edge.measured[0]:.1f} +- {1e3 * edge.measured[1]:.2g}"
            elif math.isfinite(edge.bound):
                value = f"at least {max(1e3 * edge.bound, 0.0):.0f}"
            else:
                value = "unknown"
            rows.append((edge.foot, edge.name, f"{1e3 * edge.described:g}", value))
        if outline.height is not None:
            height = f"{1e3 * outline.height[0]:.1f} +- {1e3 * outline.height[1]:.2g}"
            rows.append((outline.sole.name, "height", "0", height))
    yield "soles: distance of each edge from the origin of the sole frame, if the ground is flat [mm]"
    yield from aligned(rows)
    edges = [edge for outline in outlines for edge in outline.edges]
    for edge in edges:
        if edge.obstacle is not None:
            yield (
                f"  {edge.foot} {edge.name}: not measured, because the ground is not flat: the foot turned about "
                f"{1e3 * edge.obstacle:.1f} mm, and the CoP was farther out at another time"
            )
    blind = dict.fromkeys(edge.foot for edge in edges if math.isnan(edge.bound))
    if blind:
        yield f"  unknown: no load on {some(list(blind))}, or the ankle sensor does not measure the CoP"
    flat = [edge for edge in edges if edge.measured is None and math.isfinite(edge.bound)]
    if flat:
        motions = dict.fromkeys(SHOWN_BY.get(edge.name, _OTHER) for edge in flat)
        yield f"  to measure the others: {'; '.join(motions)}"
    for outline in outlines:
        if any(edge.measured is not None or edge.bound > edge.described for edge in outline.edges):
            yield _for_robot(outline)


def _for_robot(outline: Outline) -> str:
    """Return the line with the vertices for robot.yaml, or with the edges that have changed if they are no polygon."""
    if outline.vertices is not None:
        vertices = ", ".join(f"[{x:.4f}, {y:.4f}]" for x, y in outline.vertices)
        return f"  for robot.yaml: feet.{outline.sole.name}.vertices: [{vertices}]"
    moved = [edge.name for edge in outline.edges if edge.best != edge.described]
    return (
        f"  {outline.sole.name}: no vertices for robot.yaml, because the edges {some(moved)} cut off another edge; "
        "measure the others as well, or describe the sole with fewer edges"
    )


def outlines(robot: Robot, result: Estimate, recordings: Sequence[Feet]) -> tuple[Outline, ...]:
    """Return the soles of a robot, those of three vertices or more.

    While a loaded foot turns about an edge, the ground acts on this edge, and so has no moment about it. The moment is
    linear in position and height of the edge.

    Args:
        robot: The robot as described.
        result: The estimate, with the offsets of the ankle sensors.
        recordings: Forces and motion of the feet in each recording.
    """
    return tuple(
        _outline(sole, foot, result, recordings) for foot, sole in enumerate(robot.soles) if sole.n_vertices > 2
    )


def _edges(sole: Sole) -> tuple[Array, Array]:
    """Return outward normals (N, 2) of the edges of a sole, and their distances (N,) from its origin [m]."""
    along = np.roll(sole.vertices, -1, axis=0) - sole.vertices
    normals = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
    return normals, np.einsum("ij,ij->i", normals, sole.vertices)


def _name(normal: Array) -> str:
    angle = math.atan2(normal[1], normal[0])
    quarter = round(angle / (0.5 * math.pi))
    if abs(angle - 0.5 * math.pi * quarter) < _STRAIGHT:
        return _DIRECTIONS[quarter % 4]
    return f"{math.degrees(angle):.0f} deg"


def _outline(sole: Sole, foot: int, result: Estimate, recordings: Sequence[Feet]) -> Outline:
    """Return the sole of a foot."""
    normals, described = _edges(sole)
    turns = [_turns(feet, foot, normals, described) for feet in recordings]
    lasting = sum(rows.sum(axis=0) for rows in turns) >= INDEPENDENT
    parts = [
        (feet, rows[:, edge], int(edge))
        for feet, rows in zip(recordings, turns, strict=True)
        for edge in np.flatnonzero(lasting)
        if rows[:, edge].any()
    ]
    bounds = _bounds(recordings, foot, normals)
    distances, height = _measured(result, foot, normals, parts)
    obstacles: dict[int, float] = {}
    while crossed := {i: value for i, (value, half) in distances.items() if value + half < bounds[i]}:
        obstacles |= crossed
        distances, height = _measured(result, foot, normals, [part for part in parts if part[-1] not in obstacles])
    edges = tuple(
        Edge(sole.name, _name(normal), float(distance), float(bound), distances.get(i), obstacles.get(i))
        for i, (normal, distance, bound) in enumerate(zip(normals, described, bounds, strict=True))
    )
    return Outline(sole, edges, height)


def _measured(
    result: Estimate, foot: int, normals: Array, parts: Sequence[tuple[Feet, Flags, int]]
) -> tuple[dict[int, tuple[float, float]], tuple[float, float] | None]:
    """Return the distances of the edges in ``parts`` and the height of the sole, with half widths; none from few rows.

    Args:
        result: The estimate.
        foot: The foot.
        normals: (N, 2) outward normals of its edges.
        parts: A recording, the rows in which the foot turned about an edge, and this edge.
    """
    if not parts:
        return {}, None
    shown = sorted({edge for *_, edge in parts})
    columns, measured, slopes = [], [], []
    for feet, rows, edge in parts:
        wrench = feet.wrench[rows, foot]
        value, gradient = _distance(wrench, normals[edge])
        column = np.zeros((len(wrench), len(shown) + 1))
        column[:, shown.index(edge)] = 1.0
        column[:, -1] = -(wrench[:, :2] @ normals[edge]) / wrench[:, 2]
        columns.append(column)
        measured.append(value)
        slopes.append(np.einsum("nc,nci->ni", gradient, feet.slope[rows, foot]) @ feet.numbers[foot])
    spread = np.append(np.full(len(shown), ANYWHERE), HEIGHT)
    found = fitted(result, np.vstack(columns), np.concatenate(measured), np.vstack(slopes), spread)
    if found is None:
        return {}, None
    *distances, height = [(float(x), float(half)) for x, half in zip(*found, strict=True)]
    return dict(zip(shown, distances, strict=True)), height


def _distance(wrench: Array, normal: Array) -> tuple[Array, Array]:
    """Return the centre of pressure (n,) along a normal of wrenches (n, 6) [m], and its derivatives (n, 6)."""
    value = (wrench[:, 3] * normal[1] - wrench[:, 4] * normal[0]) / wrench[:, 2]
    gradient = np.zeros_like(wrench)
    gradient[:, 2], gradient[:, 3], gradient[:, 4] = -value, normal[1], -normal[0]
    return value, gradient / wrench[:, 2:3]


def _turns(feet: Feet, foot: int, normals: Array, described: Array) -> Flags:
    """Return whether a loaded foot turns about each edge (n, N) during the second smoothing window."""
    wrench, turning = feet.wrench[:, foot], feet.turning[:, foot, :2]
    across = turning @ normals.T
    about = turning @ np.stack([-normals[:, 1], normals[:, 0]])
    turns = (
        feet.has_cop[foot]
        & feet.loaded[:, foot, None]
        & (np.abs(about) > TURNS)
        & (np.abs(across) < ALONG * np.abs(about))
    )
    load = np.where(feet.loaded[:, foot], wrench[:, 2], np.inf)[:, None]
    cop = (wrench[:, 3:4] * normals[:, 1] - wrench[:, 4:5] * normals[:, 0]) / load
    nearest = np.argmax(cop - described, axis=1)
    turns &= nearest[:, None] == np.arange(len(normals))
    return throughout(np.asarray(turns))


def _bounds(recordings: Sequence[Feet], foot: int, normals: Array) -> Array:
    """Return lower bounds (N,) of the distances of the edges [m], NaN without load."""
    bounds = np.full(len(normals), np.nan)
    tests = len(normals) * sum(int(feet.loaded[:, foot].sum()) for feet in recordings)
    of_estimate, of_noise = quantiles(tests, len(normals) * len(recordings), 1)
    for feet in recordings:
        wrench, slope = feet.smoothed()
        beside = (len(feet.t) - len(wrench)) // 2
        rows = feet.loaded_throughout[beside : len(feet.t) - beside, foot]
        if not rows.any() or not feet.has_cop[foot]:
            continue
        force = wrench[rows, foot]
        for edge, normal in enumerate(normals):
            value, gradient = _distance(force, normal)
            known = np.einsum("nc,nci->ni", gradient, slope[rows, foot])
            variance = np.einsum("ni,ij,nj->n", known, feet.covariance[foot], known)
            variance += (HEIGHT * (force[:, :2] @ normal) / force[:, 2]) ** 2
            white = np.linalg.norm(gradient * feet.noise[foot], axis=1)
            ends = value - of_estimate * np.sqrt(variance) - of_noise * white
            bounds[edge] = np.fmax(bounds[edge], ends.max())
    return bounds
