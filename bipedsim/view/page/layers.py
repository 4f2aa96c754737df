"""Define the layers of the scene that the user can show and hide."""

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
    "axes": ("joint axes", False),
    "inertia": ("inertia boxes", False),
    "caption": ("time and modes next to the robot", False),
}
"""Name of a layer to its name on the page, and whether it is initially visible."""
STEP = 2.0**-15
"""Positions are rounded to this [m]. The error is invisible, and a static file becomes half as large."""


class Layer:
    """Group of nodes of the scene that are shown and hidden together.

    Args:
        on: Whether the layer is initially visible.
    """

    def __init__(self, on: bool) -> None:
        self._on = on
        self._nodes: dict[int, tuple[Any, bool]] = {}

    @property
    def on(self) -> bool:
        """Whether the layer is visible."""
        return self._on

    def see(self, node: Any, exists: bool = True) -> None:
        """Add ``node`` to the layer; ``exists`` is whether the node itself exists at present."""
        known = self._nodes.get(id(node))
        if known is None or known[1] != exists:
            self._nodes[id(node)] = node, exists
            node.visible = self._on and exists

    def switch(self, on: bool) -> None:
        """Show or hide the nodes that exist at present."""
        self._on = on
        for node, exists in self._nodes.values():
            node.visible = on and exists


def make_layers() -> dict[str, Layer]:
    """Return all layers in their initial state."""
    return {name: Layer(on) for name, (_, on) in LAYERS.items()}


def rounded(values: Array) -> Array:
    """Return ``values`` rounded to multiples of :data:`STEP`."""
    return np.asarray(np.round(values / STEP) * STEP)


def wxyz(rotation: Array) -> Array:
    """Return the quaternion (4,) of a rotation (3, 3) in viser's order, real part first."""
    return rounded(np.roll(pin.Quaternion(rotation).coeffs(), 1))


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#RRGGBB``."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def place(node: Any, pose: pin.SE3) -> None:
    """Set the pose of ``node`` relative to its parent."""
    node.position = tuple(rounded(pose.translation))
    node.wxyz = tuple(wxyz(pose.rotation))


def arrows(scene: Any, name: str, colour: str, size: float) -> Any:
    """Create hidden arrows for :func:`point`.

    Args:
        scene: Scene of viser.
        name: Name of the node.
        colour: Colour as ``#RRGGBB``.
        size: Size of the robot [m].
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
    """Shorten an arrow (3,) to at most ``longest`` [m]."""
    length = float(np.linalg.norm(vector))
    return np.asarray(vector * (longest / length if length > longest else 1.0))


def point(layer: Layer, node: Any, tails: Array, vectors: Array, shortest: float) -> None:
    """Set arrows from ``tails`` (n, 3) along ``vectors`` (n, 3) [m]; hide those below ``shortest`` or with NaN."""
    with np.errstate(invalid="ignore"):
        visible = np.isfinite(tails).all(axis=1) & (np.linalg.norm(vectors, axis=1) > shortest)
    if visible.any():
        node.points = rounded(np.stack([tails, tails + vectors], axis=1)[visible])
    layer.see(node, bool(visible.any()))
