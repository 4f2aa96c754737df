"""The second process compiles the kernels that the first one needs, and ends when the first one continues."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from children_support import children_of
from kernels_support import keep_kernels_in

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
    return set(children_of())


def test_it_begins_with_the_first_kernel_and_ends_with_the_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_kernels_in(tmp_path, monkeypatch)
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
        assert f"bipedsim.runs.beside\0one_step\0{os.getpid()}".encode() in Path(f"/proc/{helper}/cmdline").read_bytes()
    assert _children() == before
    with compiling_beside("one_step"):
        some(2.0)
        assert _children() == before, "nothing had to be compiled"
    kernel_cache.cache_folder.cache_clear()


KILLED = """
import os, signal, sys
from bipedsim.numerics import kernel
from bipedsim.runs import compiling_beside

@kernel
def some(x):
    return x + 3.0

with compiling_beside("one_step"):
    some(1.0)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _compiles_for(parent: int) -> bool:
    """Return whether a process compiles for the process ``parent``."""
    command = f"bipedsim.runs.beside\0one_step\0{parent}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().endswith(command):
                return True
    return False


@pytest.mark.long
def test_it_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Its kernels would take a minute or more."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    process = subprocess.Popen([sys.executable, script], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    assert process.wait() == -signal.SIGKILL
    patience = time.monotonic() + 30.0
    while _compiles_for(process.pid):
        assert time.monotonic() < patience
        time.sleep(0.1)


@pytest.mark.slow
def test_it_compiles_what_the_run_needs(tmp_path: Path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def kept() -> set[str]:
        return {path.name for path in tmp_path.glob("*.nbc")}

    command = [sys.executable, "-m", "bipedsim.runs.beside", "nonlinear_damping", str(os.getpid())]
    subprocess.run(command, env=env, check=True)
    beside = kept()
    subprocess.run([sys.executable, "-c", RUN], env=env, check=True)
    late = {name.partition("-")[0] for name in kept() - beside}
    assert "bipedsim.dynamics.step_kernels.attempt_compiled" in late
    packages = "contact.compliant", "touch.find.find_contacts", "analysis", "sim.monitors"
    for part in (f"bipedsim.{package}" for package in packages):
        assert any(name.startswith(part) for name in beside)
        assert not [name for name in late if name.startswith(part)]
