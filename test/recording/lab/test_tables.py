"""Tables as files: names and texts that others can read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import scipy
from refusals import refusal

from bipedsim.recording.lab import LabTable, write_mat


def test_names_in_matlab_have_its_letters(tmp_path: Path) -> None:
    """ASCII, no digit in front, 63 at most; MATLAB opens no struct with others."""
    names = ("Fuß_links_Fz", "größe", "1st", "plain", "a b-c", "x" * 80)
    table = LabTable({name: np.full(3, float(k)) for k, name in enumerate(names)}, dict.fromkeys(names, "N"))
    write_mat(table, tmp_path / "run.mat")
    data = scipy.io.loadmat(tmp_path / "run.mat")["data"]
    assert len(data.dtype.names) == len(names)
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,62}", name) for name in data.dtype.names)
    assert [float(data[name][0, 0][0, 0]) for name in data.dtype.names] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_columns_that_would_have_one_name_in_matlab_are_refused(tmp_path: Path) -> None:
    table = LabTable({"fü": np.zeros(2), "fö": np.zeros(2)}, {"fü": "", "fö": ""})
    with refusal(place=f"{tmp_path / 'run.mat'}: f_"):
        write_mat(table, tmp_path / "run.mat")
