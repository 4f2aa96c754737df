"""Parts of the scene that a reader switches on and off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array

LAYERS = {
    "ground": ("ground", True),
    "names": ("names and friction of the ground", False),
    "robot": ("robot", True),
    "soles": ("soles and contact modes", True),
    "forces": ("forces at the CoP", True),
    "vertex_forces": ("forces at vertices", True),
    "cones": ("friction cones", False),
    "bodies": ("forces on other bodies", True),
    "com": ("CoM and its projection", True),
    "capture": ("capture point", True),
    "support": ("support polygon", True),
    "plan": ("plan of the controller", True),
    "pushes": ("pushes", True),
    "objects": ("objects", True),
    "caption": ("time and modes beside the robot", False),
}
"""Name of a layer to what the page calls it, and whether it is seen at first."""
STEP = 2.0**-15
"""Places are rounded to this [m]: nobody sees it, and a file of them is half as long."""


class Layer:
    """Nodes of the scene that are seen together.

    Args:
        on: Whether they are seen at first.
    """

    def __init__(self, on: bool) -> None:
        self._on = on
        self._nodes: dict[int, tuple[Any, bool]] = {}

    @property
    def on(self) -> bool:
        """Whether they are seen."""
        return self._on

    def see(self, node: Any, there: bool = True) -> None:
        """Show ``node`` with the layer, if it is ``there`` now."""
        known = self._nodes.get(id(node))
        if known is None or known[1] != there:
            self._nodes[id(node)] = node, there
            node.visible = self._on and there

    def switch(self, on: bool) -> None:
        """Show or hide what is there."""
        self._on = on
        for node, there in self._nodes.values():
            node.visible = on and there


def make_layers() -> dict[str, Layer]:
    """Return all layers as they are at first."""
    return {name: Layer(on) for name, (_, on) in LAYERS.items()}


def rounded(values: Array) -> Array:
    """Return ``values`` rounded to multiples of :data:`STEP`."""
    return np.asarray(np.round(values / STEP) * STEP)


def wxyz(rotation: Array) -> Array:
    """Return the quaternion (4,) of a rotation (3, 3) as viser has it, its real part first."""
    return rounded(np.roll(pin.Quaternion(rotation).coeffs(), 1))


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#RRGGBB``."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def place(node: Any, pose: pin.SE3) -> None:
    """Put ``node`` at a pose relative to its parent."""
    node.position = tuple(rounded(pose.translation))
    node.wxyz = tuple(wxyz(pose.rotation))


def arrows(scene: Any, name: str, colour: str, size: float) -> Any:
    """Return hidden arrows for :func:`point`.

    Args:
        scene: Of viser.
        name: Of the node.
        colour: As ``#RRGGBB``.
        size: Of the robot [m].
    """
    return scene.add_arrows(
        name,
        np.zeros((1, 2, 3)),
        rgb(colour),
        shaft_radius=0.006 * size,
        head_radius=0.015 * size,
        head_length=0.035 * size,
        visible=False,
    )


def shortened(vector: Array, longest: float) -> Array:
    """Return an arrow (3,), no longer than ``longest`` [m]."""
    length = float(np.linalg.norm(vector))
    return np.asarray(vector * (longest / length if length > longest else 1.0))


def point(layer: Layer, node: Any, tails: Array, vectors: Array, shortest: float) -> None:
    """Let arrows go from ``tails`` (n, 3) along ``vectors`` (n, 3) [m]; those that are shorter or NaN are not there."""
    with np.errstate(invalid="ignore"):
        seen = np.isfinite(tails).all(axis=1) & (np.linalg.norm(vectors, axis=1) > shortest)
    if seen.any():
        node.points = rounded(np.stack([tails, tails + vectors], axis=1)[seen])
    layer.see(node, bool(seen.any()))
