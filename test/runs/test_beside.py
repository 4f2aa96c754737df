"""What a second process compiles is what the first one needs, and it is gone when the first one goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bipedsim.numerics import jit, kernel_cache
from bipedsim.runs import compiling_beside

RUN = """
from bipedsim.analysis import Verdict
from bipedsim.model import load_robot
from bipedsim.sim import Simulator
sim = Simulator(load_robot("talos_legs"), contact="nonlinear_damping")
Verdict(sim).warm_up()
sim.watch(lambda name, said, begun: None)
sim.warm_up()
"""


def _children() -> set[int]:
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_it_begins_with_the_first_kernel_and_ends_with_the_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernel_cache.cache_folder.cache_clear()

    @jit.kernel
    def some(x):
        return x + 3.0

    before = _children()
    with compiling_beside("one_step"):
        assert _children() == before, "nothing has to be compiled yet"
        some(1.0)
        some(1)
        (helper,) = _children() - before
        assert b"bipedsim.runs.beside\0one_step" in Path(f"/proc/{helper}/cmdline").read_bytes()
    assert _children() == before
    with compiling_beside("one_step"):
        some(2.0)
        assert _children() == before, "nothing had to be compiled"
    kernel_cache.cache_folder.cache_clear()


@pytest.mark.slow
def test_it_compiles_what_the_run_needs(tmp_path: Path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def kept() -> set[str]:
        return {path.name for path in tmp_path.glob("*.nbc")}

    subprocess.run([sys.executable, "-m", "bipedsim.runs.beside", "nonlinear_damping"], env=env, check=True)
    beside = kept()
    subprocess.run([sys.executable, "-c", RUN], env=env, check=True)
    late = {name.partition("-")[0] for name in kept() - beside}
    assert "bipedsim.dynamics.step._step" in late
    for part in ("bipedsim.contact.", "bipedsim.analysis.", "bipedsim.sim.monitors."):
        assert any(name.startswith(part) for name in beside)
        assert not [name for name in late if name.startswith(part)]
