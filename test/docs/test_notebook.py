"""The notebook in examples/ runs from top to bottom, prints its stated results, and stays small."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

NOTEBOOK = ROOT / "examples" / "controller.ipynb"


def outputs(notebook: Any) -> Iterator[tuple[str, Any]]:
    """Yield kind and content of all outputs of the cells. Of images, only the kind: their content depends on fonts."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                # On a new machine, a cell compiles first and reports it.
                said = [line for line in output.text.splitlines() if not line.startswith(("compiling ", "compiled "))]
                if said:
                    yield output.name, "\n".join(said)
            else:
                data = output.get("data", {})
                shown = [kind for kind in data if kind != "text/plain"]
                yield ", ".join(shown), data.get("text/html") if shown == ["text/html"] else None


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Proactor event loop", "ignore:Kernel is running over TCP")
def test_the_notebook_runs_and_shows_what_is_kept_in_it(tmp_path: Path) -> None:
    kept = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(fresh, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert list(tmp_path.iterdir()) == []
    assert list(outputs(fresh)) == list(outputs(kept))
    kinds = [kind for kind, _ in outputs(kept)]
    assert {"image/png", "image/gif", "text/html", "stdout"} <= set(kinds)
    assert "stderr" not in kinds


def test_the_notebook_is_small_and_names_no_place_of_this_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 300_000
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    said = [cell.source for cell in cells] + [str(content) for _, content in outputs(nbformat.read(NOTEBOOK, 4))]
    assert not any(place in one for one in said for place in ("/tmp", "/home", "/work", "/root"))
