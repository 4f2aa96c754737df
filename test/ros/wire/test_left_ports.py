"""Ports of shared memory that killed processes have left are removed, and no others."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from bipedsim_ros.wire.left_ports import remove_left_ports


def test_ports_at_which_nobody_listens_are_removed(tmp_path: Path) -> None:
    def make(name: str, *more: str, age: float = 60.0) -> None:
        for file in (name, *(f"{name}_{kind}" for kind in more), f"sem.{name}_mutex"):
            (tmp_path / file).touch()
            os.utime(tmp_path / file, (0.0, (tmp_path / file).stat().st_mtime - age))

    make("fastrtps_port7000")
    make("fastrtps_port7001", "el")
    make("fastdds_port7002", "sl")
    make("fastrtps_port7003", "el")
    make("fastrtps_port7004", age=0.0)
    make("fastrtps_0123456789abcdef")
    with (tmp_path / "fastrtps_port7003_el").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert remove_left_ports(tmp_path) == ["fastdds_port7002", "fastrtps_port7000", "fastrtps_port7001"]
    assert sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith("sem.")) == [
        "fastrtps_0123456789abcdef",
        "fastrtps_port7003",
        "fastrtps_port7003_el",
        "fastrtps_port7004",
    ]
    assert len(list(tmp_path.glob("sem.*"))) == 3
