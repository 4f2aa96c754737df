"""Files that cannot be opened are refused with the reason of the operating system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from refusals import refusal

from bipedsim.config.files import check_readable, open_file
from bipedsim.descriptions import import_robot
from bipedsim.errors import BipedSimError, ConfigError, RecordingError
from bipedsim.recording import load_recording
from bipedsim.recording.lab import read_trial

CAUSES = {
    "missing": FileNotFoundError,
    "folder": IsADirectoryError,
    "ring": OSError,
    "shut/in": PermissionError,
    "denied": PermissionError,
    "file/in": NotADirectoryError,
    "x" * 300: OSError,
    "x\0": ValueError,
}


READERS = {
    **dict.fromkeys((".c3d", ".mot", ".csv"), read_trial),
    **dict.fromkeys((".urdf", ".xml"), import_robot),
    **dict.fromkeys((".npz", ".mcap"), load_recording),
}


@pytest.fixture
def make(tmp_path: Path) -> Path:
    for suffix in ("", *READERS):
        (tmp_path / f"folder{suffix}").mkdir()
        (tmp_path / f"ring{suffix}").symlink_to(f"ring{suffix}")
        (tmp_path / f"denied{suffix}").write_text("x")
        (tmp_path / f"denied{suffix}").chmod(0)
    (tmp_path / "file").write_text("x")
    (tmp_path / "shut").mkdir(mode=0)
    return tmp_path


def needs_a_user(name: str) -> None:
    if os.geteuid() == 0 and CAUSES[name] is PermissionError:
        pytest.skip("permissions do not bind root")


@pytest.mark.parametrize("name", CAUSES)
def test_a_file_that_cannot_be_opened_is_refused_with_the_reason(name: str, make: Path) -> None:
    needs_a_user(name)
    for kind in (ConfigError, RecordingError):
        with refusal(kind, cause=CAUSES[name]), open_file(make / name, kind):
            pass
    check_readable(make / "file")
    check_readable(make / "folder", directories=True)


@pytest.mark.parametrize("name", list(CAUSES)[:-2])
@pytest.mark.parametrize("suffix", READERS)
def test_every_reader_states_the_reason(name: str, suffix: str, make: Path) -> None:
    needs_a_user(name)
    read = READERS[suffix]
    kind: type[BipedSimError] = ConfigError if read is import_robot else RecordingError
    directories = name == "folder" and read is not read_trial
    with refusal(kind, place=make / f"{name}{suffix}", **({} if directories else {"cause": CAUSES[name]})):
        read(make / f"{name}{suffix}")
