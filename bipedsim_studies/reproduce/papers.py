"""List the papers with reproducible experiments.

``bipedsim reproduce PAPER [CASE ...]`` runs them; docs/reproduce.md describes each case.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bipedsim.errors import UnknownNameError

if TYPE_CHECKING:
    from bipedsim_studies.reproduce.common import Paper

PAPERS: dict[str, str] = {
    "moraud2008": "bipedsim_studies.reproduce.moraud2008",
    "rengifo2009": "bipedsim_studies.reproduce.rengifo2009",
    "hurmuzlu2001": "bipedsim_studies.reproduce.hurmuzlu2001",
    "marhefka1996": "bipedsim_studies.reproduce.marhefka1996",
    "adubredu": "bipedsim_studies.reproduce.adubredu",
}
"""Module with the ``PAPER`` of each name; it is imported on request."""


def get_paper(name: str) -> Paper:
    """Return the paper called ``name``.

    Raises:
        UnknownNameError: There is no such paper; the message lists all names.
    """
    if name not in PAPERS:
        raise UnknownNameError("paper", name, PAPERS)
    paper: Paper = import_module(PAPERS[name]).PAPER
    return paper
