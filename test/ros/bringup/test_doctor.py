"""`bipedsim doctor`: an irregularity is a problem or a hint, and the exit code depends on it."""

from __future__ import annotations

import argparse
import fcntl
import importlib.metadata
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from kernels_support import keep_kernels_in
from paths import ROOT

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_FAILED, EXIT_OK
from bipedsim.numerics import kernel_cache
from bipedsim.runs import bits
from bipedsim_ros.bringup import doctor
from bipedsim_ros.wire import shared_memory

DEVELOPERS = {"docs", "ros", "kilted", "examples", "bench", "test", "lint", "setup"}


def examine(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code of the command and its checks by name."""
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    capsys.readouterr()
    code = doctor.main(parser.parse_args(["--json", *options]))
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] == (code == EXIT_OK) == all(check["status"] != "problem" for check in found["checks"])
    assert all(bool(check["advice"]) == (check["status"] != "ok") for check in found["checks"])
    return code, {check["name"]: check for check in found["checks"]}


def distribution(folder: Path, name: str, version: str, *lines: str) -> None:
    """Write the metadata of a distribution, which replaces an installed one if the folder comes first."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    text = "\n".join(("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines))
    (info / "METADATA").write_text(f"{text}\n", encoding="utf-8")


def test_this_installation_is_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = examine(capsys)
    assert code == EXIT_OK, [check for check in checks.values() if check["status"] == "problem"]
    assert checks["numpy"]["value"] == importlib.metadata.version("numpy")
    assert {name.removeprefix("extra ") for name in checks if name.startswith("extra ")} == set(doctor.EXTRAS)


def test_a_person_reads_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == EXIT_OK
    words = capsys.readouterr().out
    for name, check in examine(capsys)[1].items():
        assert re.search(rf"^{re.escape(name)} ", words, re.MULTILINE), check


def test_every_extra_of_a_user_is_known() -> None:
    text = (ROOT / "setup.py").read_text("utf-8").partition("extras_require={")[2].partition("}")[0]
    assert set(doctor.EXTRAS) == set(re.findall(r'^ +"(\w+)":', text, re.MULTILINE)) - DEVELOPERS


def test_a_missing_package_and_one_out_of_bounds_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = importlib.metadata.version("bipedsim")
    wanted = ("numpy>=1.21", "pin>=4.1", "scipy>=9999", "no-such-package>=2; python_version >= '3'")
    elsewhere = ("other>=1; python_version < '3'", "lab-thing; extra == 'lab'")
    distribution(tmp_path, "bipedsim", version, *(f"Requires-Dist: {one}" for one in (*wanted, *elsewhere)))
    distribution(tmp_path, "numpy", "1.20")
    monkeypatch.syspath_prepend(tmp_path)
    code, checks = examine(capsys)
    assert code == EXIT_FAILED
    assert checks["numpy"]["unmet"][0] == "numpy>=1.21"
    assert checks["numba"]["status"] == checks["pinocchio"]["status"] == "ok"
    assert checks["other packages"]["unmet"] == ["scipy>=9999", "no-such-package>=2"]
    assert (checks["extra lab"]["installed"], checks["extra lab"]["status"]) == (False, "hint")


def test_another_version_than_pip_knows_and_an_old_python_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    distribution(tmp_path, "bipedsim", "0.0.1", "Requires-Python: >=99")
    monkeypatch.syspath_prepend(tmp_path)
    code, checks = examine(capsys)
    assert (code, checks["bipedsim"]["status"], checks["Python"]["status"]) == (EXIT_FAILED, "problem", "problem")


def test_a_package_that_cannot_be_imported_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("raise OSError('libgomp.so.1')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(doctor.MODULES, "pin", "broken")
    code, checks = examine(capsys)
    assert (code, checks["broken"]["status"]) == (EXIT_FAILED, "problem")


@pytest.mark.ros
def test_a_missing_ros_package_is_a_hint_that_names_its_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    monkeypatch.setattr(doctor, "ROS_PACKAGES", {"no_such_msgs": "an action", "std_msgs": "numbers"})
    code, checks = examine(capsys)
    assert (code, checks["ROS packages"]["status"]) == (EXIT_OK, "hint")
    assert checks["ROS packages"]["missing"] == ["no_such_msgs"]
    assert "an action" in checks["ROS packages"]["value"]


@pytest.mark.ros
def test_a_middleware_that_is_not_installed_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_no_such_cpp")
    code, checks = examine(capsys)
    assert (code, checks["ROS 2"]["status"]) == (EXIT_FAILED, "problem")


@pytest.mark.long
def test_a_folder_that_takes_no_kernels_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "kernels"
    keep_kernels_in(folder, monkeypatch)
    kernel_cache.cache_folder.cache_clear()
    try:
        code, checks = examine(capsys)
        assert (code, checks["kernels"]["source"], checks["kernels"]["status"]) == (EXIT_OK, "none", "hint")
        folder.mkdir()
        tag = kernel_cache._compiler(kernel_cache.cpu_target.target_context.codegen())
        (folder / f"f-{tag}0123-4567.nbc").write_bytes(b"12345")
        (folder / "f-another-4567.nbc").write_bytes(b"12345")
        kernels = examine(capsys)[1]["kernels"]
        assert (kernels["source"], kernels["files"], kernels["size"], kernels["status"]) == ("cache", 1, 5, "ok")
        # Not even root can create a folder below a file.
        keep_kernels_in(folder / "f-another-4567.nbc" / "kernels", monkeypatch)
        kernel_cache.cache_folder.cache_clear()
        code, checks = examine(capsys)
        assert (code, checks["kernels"]["writable"], checks["kernels"]["status"]) == (EXIT_FAILED, False, "problem")
    finally:
        kernel_cache.cache_folder.cache_clear()


def test_kernels_of_a_wheel_for_other_versions_are_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel_cache, "SHIPPED", tmp_path)
    kernel_cache.finish_shipped(tmp_path)
    kernel_cache.why_not_shipped.cache_clear()
    try:
        assert examine(capsys)[1]["kernels"]["source"] == "wheel"
        (tmp_path / kernel_cache.VERSIONS).write_text('{"numba": "0.1"}', encoding="utf-8")
        kernel_cache.why_not_shipped.cache_clear()
        code, checks = examine(capsys)
        assert (code, checks["kernels"]["status"]) == (EXIT_OK, "hint")
        assert checks["kernels"]["source"] != "wheel"
    finally:
        kernel_cache.why_not_shipped.cache_clear()


def test_shared_memory_of_a_dead_process_is_counted_and_that_of_a_live_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("fastrtps_port7000", "fastrtps_0123456789abcdef", "fastdds_fedcba9876543210"):
        for file in (name, f"{name}_el"):
            (tmp_path / file).write_bytes(b"1234" if file == name else b"")
            os.utime(tmp_path / file, (0.0, 0.0))
    monkeypatch.setattr(shared_memory.left_memory, "__defaults__", (tmp_path,))
    with (tmp_path / "fastdds_fedcba9876543210_el").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        found = examine(capsys)[1]["shared memory"]
    assert found["names"] == ["fastrtps_0123456789abcdef", "fastrtps_port7000"]
    assert (found["bytes"], found["status"]) == (8, "hint")


def test_the_trial_of_a_real_time_priority_leaves_none(capsys: pytest.CaptureFixture[str]) -> None:
    before = os.sched_getscheduler(0)
    examine(capsys)
    policies = {os.sched_getscheduler(int(thread)) for thread in os.listdir("/proc/self/task")}
    assert os.sched_getscheduler(0) == before
    assert os.SCHED_FIFO not in policies or before == os.SCHED_FIFO


@pytest.mark.long
def test_bits_are_compared_with_the_reference_of_the_same_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = {"versions": {"numba": "1", "libc": "2"}, "runs": {"walk": "a", "ball": "b"}}
    monkeypatch.setattr(bits, "make_reference", lambda: here)

    def compared(*references: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        (tmp_path / "bits.json").write_text(json.dumps(references), encoding="utf-8")
        monkeypatch.setattr(bits.compare_bits, "__defaults__", (tmp_path / "bits.json",))
        code, checks = examine(capsys, "--bits")
        return code, checks["bits"]

    other = {"versions": {"numba": "1", "libc": "1"}, "runs": {"walk": "a", "ball": "c"}}
    code, found = compared(other, here)
    assert (code, found["status"], found["differing"]) == (EXIT_OK, "ok", [])
    code, found = compared(other)
    assert (code, found["status"], found["differing"]) == (EXIT_OK, "hint", ["ball"])
    assert found["other_versions"] == {"libc": ["2", "1"]}
    code, found = compared(other | {"versions": here["versions"]})
    assert (code, found["status"], found["differing"]) == (EXIT_FAILED, "problem", ["ball"])


@pytest.mark.long
def test_the_bits_here_are_those_of_the_reference() -> None:
    """After a change that is meant to change the physics, run ``python -m bipedsim.runs.bits``."""
    found = bits.compare_bits()
    if found.other_versions:
        pytest.skip(f"no reference for these versions: {found.other_versions}")
    assert found.differing == []
