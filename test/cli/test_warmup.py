"""``bipedsim warmup`` compiles the kernels that the user names, and lists the valid names."""

from __future__ import annotations

from pathlib import Path

import pytest

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE


@pytest.mark.long
def test_what_is_named_is_compiled_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "one_step", "posture"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split("]")[0] for line in lines] == ["[1/2", "[2/2"]
    assert {line.split("] ")[1] for line in lines} == {
        "contact model one_step: kernels ready",
        "controller posture: kernels ready",
    }


def test_an_unknown_name_is_refused_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "one_stp"]) == EXIT_USAGE
    assert "did you mean 'one_step'" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["file/kernels", "/proc"])
def test_a_folder_that_cannot_be_written_is_refused(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even root can write to /proc."""
    (tmp_path / "file").touch()
    assert main(["warmup", "--output", str(tmp_path / folder)]) == EXIT_USAGE
    assert "Traceback" not in capsys.readouterr().err
