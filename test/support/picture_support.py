"""The content of a figure, read from its SVG."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np

_SVG = "{http://www.w3.org/2000/svg}"


class Drawn:
    """A figure that ``draw`` wrote to a path.

    Attributes:
        texts: Every text, in the order in which they were drawn.
        source: The SVG.
    """

    def __init__(self, draw: Callable[[Path], None], folder: Path) -> None:
        path = folder / "drawn.svg"
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            draw(path)
        self.source = path.read_text(encoding="utf-8")
        self._elements = list(ElementTree.fromstring(self.source).iter(f"{_SVG}text"))
        self.texts = ["".join(element.itertext()).strip() for element in self._elements]

    def place(self, text: str) -> np.ndarray:
        """Return where the only ``text`` begins, (2,) from the top left [pt]."""
        (i,) = [i for i, found in enumerate(self.texts) if found == text]
        element = self._elements[i]
        moved = re.search(r"translate\(([-\d.e]+)[ ,]+([-\d.e]+)\)", element.get("transform", ""))
        return np.array(moved.groups() if moved else (element.get("x"), element.get("y")), float)

    def font(self, text: str) -> str:
        """Return the style of the first ``text``."""
        return self._elements[self.texts.index(text)].get("style", "")
