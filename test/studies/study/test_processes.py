"""Processes with changed code, endless work, or an exception in the controller: each ends with a clear error."""

from __future__ import annotations

import inspect
from pathlib import Path

import pool_support
import pytest

from bipedsim.control import ControllerError
from bipedsim_studies.study.limited import Hung, limited, new_token, remove_notes
from bipedsim_studies.study.needs import ChangedError, Needs
from bipedsim_studies.study.processes import LostWorkersError, Processes

FILE = "some.yaml"


def needs(folder: Path) -> Needs:
    return Needs.of([("controller_params", {"file": str(folder / FILE)}), ("robot", "biped14")])


def test_code_or_files_that_have_changed_are_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("a: 1\n")
    first = needs(tmp_path)
    first.check()
    assert first.differences() == []
    (tmp_path / FILE).write_text("a: 2\n")
    assert len(first.differences()) == 1
    with pytest.raises(ChangedError) as caught:
        Needs(first.parts, {**first.content, "other": "1"}).check()
    assert FILE in caught.value.place
    for name in ("bipedsim", "bipedsim_studies", "numpy"):
        other = Needs(first.parts, {**needs(tmp_path).content, name: "1"})
        with pytest.raises(ChangedError) as caught:
            other.check()
        assert name in caught.value.place
    (tmp_path / FILE).unlink()
    assert FILE in first.differences()[0]


@pytest.mark.long
def test_workers_refuse_work_of_other_code_and_say_where_a_controller_raised(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("a: 1\n")
    first = needs(tmp_path)
    with Processes(1, first) as pool:
        assert dict(pool.each(abs, iter([-1, -2, -3]))) == {0: 1, 1: 2, 2: 3}
        line = inspect.getsource(pool_support.Raises).splitlines().index('        {}["gain"]')
        line += inspect.getsourcelines(pool_support.Raises)[1]
        with pytest.raises(ControllerError, match=rf"KeyError.*pool_support\.py:{line} "):
            list(pool.each(pool_support.raises, [0]))
    (tmp_path / FILE).write_text("a: 2\n")
    with pytest.raises(ChangedError), Processes(1, first) as pool:
        list(pool.each(abs, [-1]))


def test_work_that_never_ends_is_ended_and_its_line_named() -> None:
    """Not even compiled code that holds the interpreter may take longer."""
    line = inspect.getsource(pool_support.hangs).splitlines().index('    _forever.match("a" * 100 + "b")')
    line += inspect.getsourcelines(pool_support.hangs)[1]
    with (
        pytest.raises(LostWorkersError, match=rf"time_limit.*pool_support\.py:{line} \(hangs\)"),
        Processes(1, Needs.of(()), limit=0.3) as pool,
    ):
        list(pool.each(pool_support.hangs, [0]))


def test_a_call_within_its_limit_leaves_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    token = new_token()
    with limited(60.0, token, 3):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="own"), limited(60.0, token, 3):
        raise ValueError("own")
    assert Hung.previous(token, 3) is None
    (tmp_path / f"bipedsim_hung_{token}_3").write_text("Timeout (0:00:02)!\n")
    with pytest.raises(Hung, match="0:00:02"), limited(60.0, token, 3):
        raise AssertionError("it was tried again")
    remove_notes(token)
    assert list(tmp_path.iterdir()) == []
