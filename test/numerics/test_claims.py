"""Processes compile a kernel in turn, and no process waits for a dead one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bipedsim.numerics import claims
from bipedsim.numerics.claims import claim, release

HOLD = """
import sys
from pathlib import Path
from bipedsim.numerics.claims import claim, release
kernel, marker = map(Path, sys.argv[1:])
claim(kernel)
print("held", flush=True)
sys.stdin.readline()
marker.touch()
release(kernel)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time out when a file lock is never released, before the test itself times out."""
    monkeypatch.setattr(claims, "_PATIENCE_S", 240.0)


@pytest.fixture
def other(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that holds a claim on ``a.nbc`` until it is sent a line; then it leaves ``marker``, and lives on."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "a.nbc"), str(tmp_path / "marker")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_claim_waits_until_the_other_process_is_done(
    tmp_path: Path, other: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(claim(tmp_path / f"{name}.nbc") for name in "bcdefghij")
    assert not (tmp_path / "marker").exists(), "other kernels are nobody's"
    stdin, nap = other.stdin, claims.time.sleep
    assert stdin is not None

    def naps(seconds: float) -> None:
        # The other one is done as soon as this one waits, and not before.
        if not waited:
            stdin.write("\n")
            stdin.flush()
        waited.append(seconds)
        nap(seconds)

    waited: list[float] = []
    monkeypatch.setattr(claims.time, "sleep", naps)
    assert claim(tmp_path / "a.nbc")
    assert waited
    assert (tmp_path / "marker").exists()
    assert other.poll() is None
    release(tmp_path / "a.nbc")
    monkeypatch.undo()
    other.communicate("\n", timeout=240)


def test_nobody_waits_for_the_dead(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    other.kill()
    assert claim(tmp_path / "a.nbc")
    assert other.wait(240) < 0
    assert not (tmp_path / "marker").exists()


def test_a_folder_that_may_not_be_written_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers run tests as root, for whom every folder is writable.

    The test therefore simulates the permission error.
    """

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    def sleep(_: float) -> None:
        pytest.fail("nobody holds a claim")

    monkeypatch.setattr(claims.os, "open", refuse)
    monkeypatch.setattr(claims.time, "sleep", sleep)
    assert not claim(tmp_path / "a.nbc")
    release(tmp_path / "a.nbc")


def test_a_folder_that_cannot_be_made_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not claim(tmp_path / "file" / "a.nbc")
    release(tmp_path / "file" / "a.nbc")
