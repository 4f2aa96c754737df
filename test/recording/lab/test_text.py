"""Text files of makers, written by the tests in their formats: numbers, units, axes, signs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab_support import a_plate
from refusals import refusal

from bipedsim.errors import RecordingError
from bipedsim.recording.lab import LabTrial, read_trial, write_forces
from bipedsim.recording.lab.cells import cells, numbers, separator
from bipedsim.recording.lab.rate import rejected_rates

N, RATE = 120, 1000.0
DOWN = np.diag([1.0, -1.0, -1.0])
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""World to axes with z down, and with y up."""


class Person:
    """Reaction on a person in the world: force (n, 3) [N], CoP (n, 3) [m] and free moment (n,) [N.m]."""

    def __init__(self, seed: int = 0, centre: tuple[float, float] = (0.0, 0.0)) -> None:
        s = np.linspace(-0.2, 1.2, N)
        load = np.where((s > 0.0) & (s < 1.0), 700.0 + 100.0 * np.cos(4.0 * np.pi * s), 0.0)
        wave = [np.sin(6.0 * s + phase) for phase in np.random.default_rng(seed).uniform(0.0, 6.0, 4)]
        self.t = np.arange(N) / RATE
        self.force = np.column_stack([0.1 * load * wave[0], 0.05 * load * wave[1], load])
        self.cop = np.column_stack([centre[0] + 0.1 * wave[2], centre[1] + 0.15 * wave[3], 0.0 * s])
        self.twist = 0.004 * load * wave[0]

    def moment(self, at: Any) -> Any:
        """Moment (n, 3) about a point [N.m]."""
        return np.cross(self.cop - np.array(at), self.force) + np.outer(self.twist, [0.0, 0.0, 1.0])

    def check(self, trial: LabTrial, number: int = 0, atol: float = 1e-5) -> None:
        """Compare a plate of the trial, where the plate is loaded."""
        plate, on = trial.plates[number], self.force[:, 2] > 100.0
        np.testing.assert_allclose(plate.force()[on], self.force[on], atol=10.0 * atol)
        np.testing.assert_allclose(plate.cop()[on], self.cop[on], atol=atol)
        np.testing.assert_allclose(plate.free_moment()[on], self.twist[on], atol=100.0 * atol)
        np.testing.assert_allclose(plate.t, self.t, atol=1e-9)
        assert not plate.loaded(100.0)[~on].any()


def rows(*columns: Any, mark: str = "\t", decimal: str = ".") -> str:
    """Lines of a table."""
    table = np.column_stack([np.asarray(column) for column in columns])
    return "".join(mark.join(f"{value:.9f}".replace(".", decimal) for value in row) + "\n" for row in table)


def bioware(decimal: str = ".") -> tuple[str, list[Person]]:
    """Kistler: two plates of the same name, loads, z into the floor, moments about the transducers 40 mm below."""
    people = [Person(0), Person(1)]
    blocks = []
    for person in people:
        force, moment = -person.force @ DOWN.T, -person.moment([0.0, 0.0, -0.04]) @ DOWN.T
        blocks += [force, np.linalg.norm(force, axis=1), moment, (person.cop @ DOWN.T)[:, :2]]
    names = ["Fx", "Fy", "Fz", "|Ft|", "Mx", "My", "Mz", "Ax", "Ay"]
    return (
        "BioWare Version 5.3.2.9 Export\n"
        + "\t".join(["Device:", *["9286BA"] * 18])
        + f"\nRate (Hz):\t1000{decimal}000\nFile Information\nName\tMüller\n\n"
        + "\t".join(["abs time (s)", *names * 2])
        + "\n"
        + "\t".join(["", *["N", "N", "N", "N", "N*m", "N*m", "N*m", "m", "m"] * 2])
        + "\n"
        + rows(people[0].t, *blocks, decimal=decimal)
    ), people


def nexus(force: str = "N", moment: str = "N.mm", newton: float = 1.0, metre: float = 1e-3) -> tuple[str, list[Person]]:
    """Vicon: loads in the axes of the laboratory, moments about the centres of plates, then another table."""
    people = [Person(0, (0.3, 0.2)), Person(1, (0.9, 0.25))]
    centres = ([0.25, 0.25, 0.0], [0.85, 0.25, 0.0])
    blocks = []
    for person, centre in zip(people, centres, strict=True):
        blocks += [-person.force / newton, -person.moment(centre) / (newton * metre), 1e3 * person.cop]
    groups = "".join(f",Imported AMTI #{k} - {kind},," for k in (1, 2) for kind in ("Force", "Moment", "CoP"))
    units = ",".join([*[force] * 3, *[moment] * 3, "mm", "mm", "mm"] * 2)
    names = ",".join(["Fx", "Fy", "Fz", "Mx", "My", "Mz", "Cx", "Cy", "Cz"] * 2)
    text = f"Devices\n1000\n,{groups}\nFrame,Sub Frame,{names}\n,,{units}\n"
    text += rows(np.arange(N) // 10 + 1, np.arange(N) % 10, *blocks, mark=",")
    return text + "\nTrajectories\n100\n,,LFHD,,\nFrame,Sub Frame,X,Y,Z\n,,mm,mm,mm\n1,0,1,2,3\n", people


def qualisys(local: bool, corners: bool = True) -> tuple[str, list[Person]]:
    """Qualisys: load in N and N.m, CoP in mm, in the axes of a plate or of the laboratory."""
    centre = np.array([0.5, 0.3, 0.0]) if corners else np.zeros(3)
    person = Person(0, (0.55, 0.35) if corners else (0.0, 0.0))
    turn = DOWN if local else np.eye(3)
    header = "NO_OF_SAMPLES\t120\nFREQUENCY\t1000\n"
    header += f"DESCRIPTION\tForce data in {'local (force plate)' if local else 'world (lab)'} coordinates\n"
    header += "FORCE_PLATE_TYPE\tBertec\nFORCE_PLATE_NAME\tBERTEC 3\n"
    for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        corner = centre + DOWN @ [0.3 * x, 0.2 * y, 0.0]
        name = f"{'POS' if x > 0 else 'NEG'}X_{'POS' if y > 0 else 'NEG'}Y"
        header += "".join(
            f"FORCE_PLATE_CORNER_{name}_{axis}\t{1e3 * value:.3f}\n"
            for axis, value in zip("XYZ", corner, strict=True)
            if corners
        )
    names = "\t".join(f"{kind}_{axis}" for kind in ("Force", "Moment", "COP") for axis in "XYZ")
    cop = person.cop - centre if local else person.cop
    blocks = [-person.force @ turn, -person.moment(centre) @ turn, 1e3 * cop @ turn]
    return f"{header}SAMPLE\tTIME\t{names}\n" + rows(np.arange(1, N + 1), person.t, *blocks), [person]


def cortex() -> tuple[str, list[Person]]:
    """Motion Analysis: reactions, CoP in mm, free moment in N.mm, y up, far from the origin; a plate is empty."""
    people = [Person(0, (25.0, -0.3)), Person(1, (26.0, -0.2))]
    people[1].force *= 0.0
    people[1].twist *= 0.0
    names = "\t".join(f"{kind}{k}" for k in (1, 2) for kind in ("FX", "FY", "FZ", "X", "Y", "Z", "MZ"))
    blocks = [np.column_stack([p.force @ Y_UP.T, 1e3 * p.cop @ Y_UP.T, 1e3 * p.twist]) for p in people]
    head = "[Force Data]\nNumberOfForcePlates=2\nSampleRate=1000.000000\nNumberOfSamples=120\n"
    text = rows(np.arange(1, N + 1), *blocks)
    return f"{head}#Sample\t{names}\n{text}", people[:1]


def dflow() -> tuple[str, list[Person]]:
    """Motek: reactions in SI units with y up, moments about the origin."""
    people = [Person(0, (0.0, 0.3)), Person(1, (0.0, -0.3))]
    names = "\t".join(f"FP{k}.{kind}{axis}" for k in (1, 2) for kind in ("For", "Mom", "Cop") for axis in "XYZ")
    blocks = [np.hstack([p.force, p.moment([0.0, 0.0, 0.0]), p.cop]) for p in people]
    blocks = [(block.reshape(N, 3, 3) @ Y_UP.T).reshape(N, 9) for block in blocks]
    return f"TimeStamp\t{names}\n" + rows(people[0].t + 0.0, *blocks), people


def bds(mark: str = "\t", decimal: str = ".", units: tuple[str, str] = ("N", "Nm")) -> tuple[str, list[Person]]:
    """BMClab: a plate, with units in the names."""
    person = Person(0)
    names = [f"F{axis}[{units[0]}]" for axis in "xyz"] + [f"M{axis}[{units[1]}]" for axis in "xyz"]
    head = mark.join(["Time[s]", *names]) + "\n"
    return head + rows(person.t, person.force, person.moment([0.0, 0.0, 0.0]), mark=mark, decimal=decimal), [person]


def pds() -> tuple[str, list[Person]]:
    """BMClab: a plate for each foot, and their sum, with y up and without units."""
    people = [Person(0, (0.0, -0.1)), Person(1, (0.0, 0.1))]
    names = [f"{foot}{kind}_{axis}" for foot in "RL" for kind in ("GRF", "COP") for axis in "XYZ"]
    names += ["GRFNET_X", "GRFNET_Y", "GRFNET_Z", "RFREEMOMENT_Y", "LFREEMOMENT_Y"]
    blocks = [np.hstack([p.force @ Y_UP.T, p.cop @ Y_UP.T]) for p in people]
    total = (people[0].force + people[1].force) @ Y_UP.T
    return "\t".join(["Time", *names]) + "\n" + rows(
        people[0].t, *blocks, total, people[0].twist, people[1].twist
    ), people


def netforce(header: str = "Rate (Hz),1000\nFx,Fy,Fz,Mx[N.mm],My[N.mm],Mz[N.mm]\n") -> tuple[str, list[Person]]:
    """AMTI: numbers alone; the header is that of a user."""
    person = Person(0)
    return header + rows(person.force, 1e3 * person.moment([0.0, 0.0, 0.0]), mark=","), [person]


MAKERS: dict[str, Callable[[], tuple[str, list[Person]]]] = {
    "kistler.txt": bioware,
    "comma.txt": lambda: bioware(","),
    "nexus.csv": nexus,
    "local.tsv": lambda: qualisys(True),
    "local_no_corners.tsv": lambda: qualisys(True, False),
    "lab.tsv": lambda: qualisys(False),
    "cortex.forces": cortex,
    "motek.txt": dflow,
    "bds.txt": bds,
    "semicolon.txt": lambda: bds(";"),
    "semicolon_comma.csv": lambda: bds(";", ","),
    "blanks.txt": lambda: bds(" "),
    "pds.txt": pds,
    "amti.csv": netforce,
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_file_has_the_forces_that_its_maker_wrote(name: str, encoding: str, tmp_path: Path) -> None:
    text, people = MAKERS[name]()
    (tmp_path / name).write_text(text, encoding=encoding, newline="\r\n")
    trial = read_trial(tmp_path / name)
    for number, person in enumerate(people):
        person.check(trial, number)
    # Only a file of Nexus has a sign that the table of the formats does not expect.
    assert len(trial.notes) == (2 if name == "nexus.csv" else 0)


def test_plates_have_the_names_of_their_maker(tmp_path: Path) -> None:
    for name, names in {
        "kistler.txt": ["9286BA (1)", "9286BA (2)"],
        "nexus.csv": ["Imported AMTI #1", "Imported AMTI #2"],
        "motek.txt": ["FP1", "FP2"],
        "cortex.forces": ["1", "2"],
        "pds.txt": ["right", "left"],
    }.items():
        (tmp_path / name).write_text(MAKERS[name]()[0], encoding="utf-8")
        assert [plate.geometry.name for plate in read_trial(tmp_path / name).plates] == names


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_name_keeps_its_letters(encoding: str, tmp_path: Path) -> None:
    text = MAKERS["nexus.csv"]()[0].replace("Imported AMTI", "Kraftmessplatte für Füße")
    (tmp_path / "trial.csv").write_text(text, encoding=encoding)
    assert read_trial(tmp_path / "trial.csv").plates[0].geometry.name == "Kraftmessplatte für Füße #1"


def test_a_plate_of_qualisys_is_where_its_corners_are(tmp_path: Path) -> None:
    for local in (True, False):
        (tmp_path / "a_f_1.tsv").write_text(qualisys(local)[0], encoding="utf-8")
        geometry = read_trial(tmp_path / "a_f_1.tsv").plates[0].geometry
        np.testing.assert_allclose(geometry.centre, [0.5, 0.3, 0.0], atol=1e-9)
        np.testing.assert_allclose(geometry.size, [0.6, 0.4], atol=1e-9)


@pytest.mark.parametrize(
    ("force", "moment", "newton", "metre"),
    [
        ("nt", "ntmm", 1.0, 1e-3),
        ("Newton", "mm.N", 1.0, 1e-3),
        ("N", "N*mm", 1.0, 1e-3),
        ("N", "N-mm", 1.0, 1e-3),
        ("N", "N·m", 1.0, 1.0),
        ("kN", "kN.m", 1e3, 1.0),
        ("kgf", "kgf.m", 9.80665, 1.0),
        ("lbf", "in-lb", 4.4482216152605, 0.0254),
    ],
)
def test_units_below_the_names(force: str, moment: str, newton: float, metre: float, tmp_path: Path) -> None:
    text, people = nexus(force, moment, newton, metre)
    (tmp_path / "trial.csv").write_text(text, encoding="utf-8")
    people[0].check(read_trial(tmp_path / "trial.csv"))


def test_each_channel_has_its_own_unit(tmp_path: Path) -> None:
    person = Person()
    moment = person.moment([0.0, 0.0, 0.0])
    names = "Time[ms];Fx[kN];Fy[N];Fz[kgf];Mx[Nmm];My[N.m];Mz[kN.m]\n"
    force = person.force / [1e3, 1.0, 9.80665]
    text = rows(1e3 * person.t, force, moment / [1e-3, 1.0, 1e3], mark=";")
    (tmp_path / "trial.csv").write_text(names + text, encoding="utf-8")
    person.check(read_trial(tmp_path / "trial.csv"))


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_moments_without_a_unit_have_the_one_that_fits_the_cop(unit: float, tmp_path: Path) -> None:
    person = Person()
    names = "Time,Fx,Fy,Fz,Mx,My,Mz,COPx,COPy\n"
    text = rows(person.t, person.force, unit * person.moment([0.0, 0.0, 0.0]), person.cop[:, :2], mark=",")
    (tmp_path / "trial.csv").write_text(names + text, encoding="utf-8")
    person.check(read_trial(tmp_path / "trial.csv"))


def test_a_cop_that_contradicts_its_moments_is_taken_with_a_note(tmp_path: Path) -> None:
    """As of a program that corrects the CoP by a polynomial; the force and Mz remain."""
    person = Person()
    moment = person.moment([0.0, 0.0, 0.0])
    person.cop = person.cop * [1.05, 0.95, 1.0]
    x, y = person.cop.T[:2]
    person.twist = moment[:, 2] - x * person.force[:, 1] + y * person.force[:, 0]
    names = "Time,Fx[N],Fy[N],Fz[N],Mx[Nm],My[Nm],Mz[Nm],COPx[m],COPy[m]\n"
    (tmp_path / "trial.csv").write_text(
        names + rows(person.t, person.force, moment, person.cop[:, :2], mark=","), encoding="utf-8"
    )
    trial = read_trial(tmp_path / "trial.csv")
    assert len(trial.notes) == 1
    on = person.force[:, 2] > 100.0
    np.testing.assert_allclose(trial.plates[0].cop()[on], person.cop[on], atol=1e-6)


@pytest.mark.parametrize("token", ["", "nan", "NaN", "-nan(ind)", "1.#IND", "-1.#QNAN", "NA"])
def test_a_missing_number_counts_as_no_force(token: str, tmp_path: Path) -> None:
    text, (person,) = bds(";")
    lines = text.split("\n")
    parts = lines[60].split(";")
    parts[3] = token
    lines[60] = ";".join(parts)
    (tmp_path / "trial.txt").write_text("\n".join(lines), encoding="utf-8")
    trial = read_trial(tmp_path / "trial.txt")
    assert len(trial.notes) == 1
    expected = person.force.copy()
    expected[59] = 0.0
    np.testing.assert_allclose(trial.plates[0].force(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("header", "notes"),
    [
        ("Sampling Rate (Hz),1000\nFilter Cutoff Frequency (Hz),20", 0),
        ("Low-pass filter rate,20\nRate,1000\nMains frequency,50\nHeart rate,72", 0),
        ("Analog Frequency,1000\nCamera Frequency,100", 1),
        ("Camera Frequency,100\nAnalog Frequency: 1000", 1),
        ("Take Name,walk 1,Capture Frame Rate,100.0,Force Plate Rate,1000.0", 1),
        ("Calibrated,5\nSampleRate,1000\nIntegrated=3", 0),
        ("Camera Frequency,1000", 1),
        ("Sampling Rate (kHz),1", 0),
        ("Rate: 1 kHz", 0),
        ("Rate,1000 Hz\nAnalog rate,1000", 0),
        ("PowerLab sampling rate,1000\nPower-line frequency,50\nPower line freq,60", 0),
        ("Sampling Freq (Hz),1000\nCutoff Freq (Hz),20", 0),
        ("Freq.,1000", 0),
        ('Rate (Hz),"1,000"', 0),
        ('Rate (Hz),"1,000.00"', 0),
    ],
)
def test_the_rate_is_the_one_of_the_plates(header: str, notes: int, tmp_path: Path) -> None:
    text, (person,) = netforce(f"{header}\nFx,Fy,Fz,Mx[N.mm],My[N.mm],Mz[N.mm]\n")
    (tmp_path / "trial.csv").write_text(text, encoding="utf-8")
    trial = read_trial(tmp_path / "trial.csv")
    person.check(trial)
    assert len(trial.notes) == notes


@pytest.mark.parametrize(
    ("header", "place"),
    [
        ("Analog Frequency,1000\nForce Rate,500", "rate"),
        ("Camera Frequency,100\nBertec Frequency,1000", "rate"),
        ("Rate (Hz),1,000", "line 1, Rate (Hz)"),
        ("Cutoff Frequency,20", "times"),
        ("Rate (kB/s),20", "times"),
    ],
)
def test_a_rate_that_is_not_certain_is_refused(header: str, place: str, tmp_path: Path) -> None:
    text = netforce(f"{header}\nFx,Fy,Fz,Mx[N.mm],My[N.mm],Mz[N.mm]\n")[0]
    (tmp_path / "trial.csv").write_text(text, encoding="utf-8")
    with refusal(RecordingError, place=place):
        read_trial(tmp_path / "trial.csv")


def test_a_missing_rate_names_the_other_rates() -> None:
    first, second = rejected_rates([["Cutoff Frequency", "20"], ["Subject", "7"], ["Rate (kB/s)", "35"]])
    assert all(part in first for part in ("Cutoff Frequency", "20"))
    assert all(part in second for part in ("Rate (kB/s)", "35"))


@pytest.mark.parametrize("rate", ["1.000", "1,000"])
def test_a_rate_beside_a_table_without_decimals_is_ambiguous(rate: str, tmp_path: Path) -> None:
    person = Person()
    numbers = np.rint(np.hstack([person.force, person.moment([0.0, 0.0, 0.0])])).astype(int)
    text = f"Rate: {rate}\nFx\tFy\tFz\tMx[N.m]\tMy[N.m]\tMz[N.m]\n"
    text += "".join("\t".join(map(str, row)) + "\n" for row in numbers.tolist())
    (tmp_path / "trial.txt").write_text(text, encoding="utf-8")
    with refusal(RecordingError, place="line 1, Rate"):
        read_trial(tmp_path / "trial.txt")


@pytest.mark.parametrize(("rate", "decimal"), [("1.000", ","), ("1,000", "."), ("1000,0", "."), ("1000", ",")])
def test_thousands_of_a_rate_have_the_other_mark_than_decimals(rate: str, decimal: str, tmp_path: Path) -> None:
    person = Person()
    names = f"Rate\t{rate}\nFx\tFy\tFz\tMx[N.m]\tMy[N.m]\tMz[N.m]\n"
    text = names + rows(person.force, person.moment([0.0, 0.0, 0.0]), decimal=decimal)
    (tmp_path / "trial.txt").write_text(text, encoding="utf-8")
    person.check(read_trial(tmp_path / "trial.txt"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"a, b",c', ["a, b", "c"]),
        ('a,"b;c"', ["a", "b;c"]),
        ('"say ""x, y""",2', ["say x, y", "2"]),
        ('5" plate,2', ['5" plate', "2"]),
        ('"a,b"', ["a", "b"]),
        ('"' + 200_000 * "x" + ',y",2', [200_000 * "x" + ",y", "2"]),
    ],
)
def test_a_separator_between_quotes_belongs_to_its_cell(line: str, expected: list[str]) -> None:
    assert cells(line, separator(line)) == expected


def test_quoted_cells_can_have_decimal_commas(tmp_path: Path) -> None:
    person = Person()
    table = np.column_stack([person.t, person.force, person.moment([0.0, 0.0, 0.0])])
    names = ["Time (s)", "Fx (N)", "Fy (N)", "Fz (N)", "Mx (Nm)", "My (Nm)", "Mz (Nm)"]
    lines = [names, *([f"{value:.9f}".replace(".", ",") for value in row] for row in table)]
    text = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    (tmp_path / "trial.csv").write_text(text, encoding="utf-8")
    person.check(read_trial(tmp_path / "trial.csv"))


@pytest.mark.parametrize("mark", [",", "."])
def test_numbers_that_may_have_thousands_separators_are_refused_by_their_cell(mark: str, tmp_path: Path) -> None:
    head = "Rate\t1000\nFx\tFy\tFz\tMx[Nmm]\tMy[Nmm]\tMz[Nmm]\n"
    body = "0\t0\t-999\t0\t0\t0\n0\t0\t-1,440\t0\t12,000\t0\n".replace(",", mark)
    (tmp_path / "trial.tsv").write_text(head + body, encoding="utf-8")
    with refusal(RecordingError, place="row 2, column 'Fz'", value=f"-1{mark}440"):
        read_trial(tmp_path / "trial.tsv")
    # Other decimals anywhere in the table tell that the mark is a decimal one.
    (tmp_path / "trial.tsv").write_text(head + body + f"0\t0\t-0{mark}5\t0\t0\t0\n", encoding="utf-8")
    assert read_trial(tmp_path / "trial.tsv").plates[0].force()[:, 2].max() == 999.0


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([["0,001", "1.234"], ["0,002", "812"]], [[0.001, 1234.0], [0.002, 812.0]]),
        ([["0,001", "1.234"], ["0,002", "812,5"]], [[0.001, 1234.0], [0.002, 812.5]]),
        ([["0.001", "1,234"], ["0.002", "812"]], [[0.001, 1234.0], [0.002, 812.0]]),
        ([["1.234,500", "1.234"], ["2.500", "-12"]], [[1234.5, 1234.0], [2500.0, -12.0]]),
        ([["1,234.5", "1,234"], ["2,500", "12"]], [[1234.5, 1234.0], [2500.0, 12.0]]),
        ([["1,234,567", "1.234"], ["2,500", "12"]], [[1234567.0, 1.234], [2500.0, 12.0]]),
        ([["1.234", "2.345"]], [[1.234, 2.345]]),
    ],
)
def test_cells_that_decide_the_decimal_mark_do_so_for_all(table: list[list[str]], expected: list[list[float]]) -> None:
    np.testing.assert_array_equal(numbers(Path("a.csv"), ["Fx", "Fz"], table), expected)


def test_decimal_marks_that_contradict_each_other_are_named() -> None:
    with pytest.raises(RecordingError) as caught:
        numbers(Path("a.csv"), ["Fx", "Fz"], [["0,001", "812"], ["0,002", "8.5"]])
    assert "row 1, column 'Fx'" in caught.value.place
    assert caught.value.value == "0,001"
    for table in ([["1.234", "1,234"]], [["1,234", "12"]], [["1.234", "12"]]):
        with refusal(RecordingError, place="row 1, column 'Fx'", value=table[0][0]):
            numbers(Path("a.csv"), ["Fx", "Fz"], table)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("amti.csv", lambda: netforce("")[0], "amti.csv"),
        ("frames.csv", lambda: netforce("Fx,Fy,Fz,Mx,My,Mz\n")[0], "times"),
        ("markers.csv", lambda: "Trajectories\n100\n,,A,,\nFrame,Sub Frame,X,Y,Z\n1,0,1,2,3\n", "markers.csv"),
        ("jump.txt", lambda: "Time[s]\tGRF[N]\n0.0\t1.0\n0.1\t2.0\n", "jump.txt"),
        ("forces.txt", lambda: "Time;Fx[N];Fy[N];Fz[N]\n0;1;2;700\n0.1;1;2;700\n", "plate '1'"),
        ("unit.txt", lambda: bds(units=("furlong", "Nm"))[0], "Fx: unit"),
        ("moment.txt", lambda: bds(units=("N", "N/m"))[0], "Mx: unit"),
        ("thousands.csv", lambda: bds(";")[0].replace("\n0.010000000;", "\n1,010;"), "times"),
        ("row.txt", lambda: bds()[0].replace("\n0.010000000\t", "\n1\t2\n0.010\t"), "row.txt"),
        ("empty.csv", lambda: "", "empty.csv"),
    ],
)
def test_what_is_not_read_is_refused_by_name(name: str, text: Callable[[], str], place: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text(), encoding="utf-8")
    with pytest.raises(RecordingError) as caught:
        read_trial(tmp_path / name)
    assert place in caught.value.place


def a_table(cop: str = "cm") -> str:
    plate = a_plate(2)
    table = np.column_stack([plate.t, plate.force(), plate.moment_about(plate.geometry.centre), 0.0 * plate.t])
    lines = [f"Time[s]\tFx[N]\tFy[N]\tFz[N]\tMx[Nm]\tMy[Nm]\tMz[Nm]\tCOPx[{cop}]"]
    return "\n".join([*lines, *("\t".join(f"{value:.9f}" for value in row) for row in table)]) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_mark_of_the_order_of_bytes_is_no_part_of_a_name(encoding: str, tmp_path: Path) -> None:
    text = a_table()
    if encoding == "utf-16-le":
        text = "\ufeff" + text
    (tmp_path / "trial.txt").write_text(text, encoding=encoding)
    np.testing.assert_allclose(read_trial(tmp_path / "trial.txt").plates[0].force(), a_plate(2).force(), atol=1e-8)
    write_forces([a_plate(2)], tmp_path / "plain.mot", 20.0)
    lines = (tmp_path / "plain.mot").read_text(encoding="utf-8").split("\n")
    # Without a name of its own its first line is the mark alone.
    (tmp_path / "trial.mot").write_text(
        "\n".join(["\ufeff" * (encoding == "utf-16-le"), *lines[1:]]), encoding=encoding
    )
    np.testing.assert_allclose(read_trial(tmp_path / "trial.mot").plates[0].force(), a_plate(2).force(), atol=1e-7)


def test_a_unit_of_the_cop_that_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trial.txt").write_text(a_table("furlong"), encoding="utf-8")
    with refusal(RecordingError, place="COPx: unit", value="furlong"):
        read_trial(tmp_path / "trial.txt")


@pytest.mark.parametrize(("unit", "metres"), [("m", 1.0), ("cm", 1e-2), ("mm", 1e-3)])
def test_a_plate_of_unknown_size_is_as_large_as_its_cop_goes_far(unit: str, metres: float, tmp_path: Path) -> None:
    # 450 N at 0.45 m along x: the default plate of 0.6 m is too small for it.
    table = [[t, 0.0, 0.0, 450.0, 0.0, -0.45 * 450.0, 0.0, 0.45 / metres] for t in (0.0, 0.01, 0.02)]
    lines = [f"Time[s]\tFx[N]\tFy[N]\tFz[N]\tMx[Nm]\tMy[Nm]\tMz[Nm]\tCOPx[{unit}]"]
    lines += ["\t".join(map(str, row)) for row in table]
    (tmp_path / "far.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plate = read_trial(tmp_path / "far.txt").plates[0]
    np.testing.assert_allclose(plate.cop()[:, 0], 0.45, atol=1e-12)
    assert 0.45 <= plate.geometry.corners[:, 0].max() <= 0.6
