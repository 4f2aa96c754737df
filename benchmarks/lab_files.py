"""Read public laboratory files with bipedsim and with other readers: `python benchmarks/lab_files.py --sources FOLDER`.

Each entry of lab_files.yaml names a file, its maker and a reader (:data:`READERS`). For each file, bipedsim and that
reader must find the same numbers:

- ezc3d: force, CoP and free moment of each plate, rates, labels, points and analog samples;
- opensim, cortex, bmclab, bmclab_two: the columns of a text file, read by numpy after the maker's conventions.

A reader returns its numbers as they are in the file. `up` and `load` state what the reader does not know: the vertical
axis of the laboratory, and the plates whose channels hold the load instead of the reaction. `differs` is for a file in
which bipedsim differs on purpose: `why`, and either the differences above the tolerances or `refused`, the place that
the error names. A file with other differences, or with none, counts as wrong.
"""

from __future__ import annotations

import argparse
import math
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.recording.lab import read_trial
from bipedsim.recording.lab.c3d_format import read_content

LIST = Path(__file__).with_name("lab_files.yaml")
LOADED = 50.0
"""Normal force above which CoP and free moment are compared [N]; also the load above which ZERO is not subtracted."""
TOLERANCES = {"force_N": 1e-4, "cop_mm": 1e-3, "twist_Nm": 2e-4, "rate": 1e-5, "samples": 0.0}
"""Largest difference that counts as equal. Corners are 32-bit floats, and text files have few digits."""
STATED = 0.05
"""Relative tolerance of the differences in `differs`, which have two digits."""
UNKNOWN = "not stated"
"""Maker of a file that does not name its program."""
UPRIGHT = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}
"""Vertical axis of a laboratory to the rotation that makes z point up."""


class Plate(NamedTuple):
    """Numbers of a plate in SI units in the axes of the file: force (n, 3), moment (n, 3) about points (n, 3), rate.

    ``moment`` is zero along the floor if ``point`` is the CoP.
    """

    force: Array
    point: Array
    moment: Array
    rate: float


class Content(NamedTuple):
    """Plates of a file and, for C3D, the differences of samples and labels."""

    plates: list[Plate]
    samples: float = 0.0
    labels: bool = True


def from_ezc3d(path: Path) -> Content:
    """Return the plates of ezc3d, with the frames of FORCE_PLATFORM:ZERO subtracted, and compare its samples."""
    import ezc3d

    read = ezc3d.c3d(str(path), extract_forceplat_data=True)
    data, parameters = read["data"], read["parameters"]
    rate = float(parameters.get("ANALOG", {}).get("RATE", {}).get("value", [0.0])[0])
    ratio = data["analogs"].shape[2] // max(1, data["points"].shape[2])
    metre = 1.0 if _texts(parameters, "POINT", "UNITS")[:1] == ["m"] else 1e-3
    zero = np.ravel(parameters.get("FORCE_PLATFORM", {}).get("ZERO", {}).get("value", []))
    first = int(read["header"]["points"]["first_frame"])
    plates = []
    for found in data["platform"]:
        corners = metre * found["corners"].T
        force, moment = found["force"].T.copy(), metre * found["moment"].T
        normal = np.cross(corners[0] - corners[1], corners[0] - corners[3])
        normal /= np.linalg.norm(normal)
        if len(zero) == 2 and 0 < zero[0] <= zero[1]:
            frames = slice((zero[0] - 1 - first) * ratio, (zero[1] - first) * ratio)
            if frames.start >= 0 and abs(force[frames].mean(axis=0) @ normal) < LOADED:
                moment -= moment[frames].mean(axis=0)
                force -= force[frames].mean(axis=0)
        plates.append(Plate(force, np.broadcast_to(corners.mean(axis=0), force.shape), moment, rate))
    content = read_content(path)
    ours, theirs = content.points, data["points"][:3].transpose(2, 1, 0)
    labels, others = content.parameters.texts("POINT", "LABELS"), _texts(parameters, "POINT", "LABELS")
    # ezc3d leaves out LABELS2, the labels of more than 255 points.
    same = labels[: len(others)] == others
    difference = _apart(ours, theirs)
    if data["analogs"].size:
        difference = max(difference, _apart(content.analogs, data["analogs"][0].T))
    return Content(plates, difference, same)


def _texts(parameters: Any, group: str, name: str) -> list[str]:
    return [text.strip() for text in parameters.get(group, {}).get(name, {}).get("value", [])]


def _apart(ours: Array, theirs: Array) -> float:
    """Return the largest difference of two arrays; infinite if their shapes or missing samples differ."""
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return np.inf
    return float(np.nanmax(np.abs(ours - theirs), initial=0.0))


def from_opensim(path: Path) -> Content:
    """Return the plates of a .mot file: its columns NAMEvx, NAMEpx and the torques of the same plate, y up."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = next(k for k, line in enumerate(lines) if line.strip().lower() == "endheader") + 1
    while not lines[begin].strip():
        begin += 1
    names = lines[begin].split()
    rows = [[float(cell) for cell in line.split()] for line in lines[begin + 1 :] if line.strip()]
    column = dict(zip(names, np.array(rows).T, strict=True))
    times = column[names[0]]
    rate = (len(times) - 1) / float(times[-1] - times[0])
    plates = []
    for name in (name[:-2] for name in names if name.endswith("vx")):
        stems = (name + "v", name + "p", _torque(names, name))
        plates.append(Plate(*(np.column_stack([column[stem + axis] for axis in "xyz"]) for stem in stems), rate))
    return Content(plates)


def _torque(names: list[str], name: str) -> str:
    """Return the stem of the torques that belong to the force ``name``, by its usual spellings."""
    stems = [name + "m", name.replace("force", "torque"), name.replace("force", "moment")]
    return next(stem for stem in stems if stem + "x" in names)


def from_cortex(path: Path) -> Content:
    """Return the plates of Cortex: Fx, Fy, Fz [N], X, Y, Z [mm], MZ [N.mm] each, y up; MZ is about the vertical."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rate = float(next(line.split("=")[1] for line in lines if line.startswith("SampleRate")))
    rows = np.genfromtxt(lines[5:])[:, 1:]
    plates = []
    for k in range(rows.shape[1] // 7):
        columns = rows[:, 7 * k : 7 * k + 7]
        plates.append(Plate(columns[:, :3], 1e-3 * columns[:, 3:6], 1e-3 * columns[:, [6]] * np.eye(3)[1], rate))
    return Content(plates)


def from_bmclab(path: Path) -> Content:
    """Return the plate of BMClab's posturography: time, Fx, Fy, Fz, Mx, My, Mz, CoPx, CoPy; N, N.m, cm, z up."""
    rows = np.genfromtxt(path, skip_header=1)
    cop = np.column_stack([1e-2 * rows[:, 7:9], np.zeros(len(rows))])
    twist = rows[:, 6] - (cop[:, 0] * rows[:, 2] - cop[:, 1] * rows[:, 1])
    return Content([Plate(rows[:, 1:4], cop, twist[:, None] * np.eye(3)[2], 1.0 / (rows[1, 0] - rows[0, 0]))])


def from_bmclab_two(path: Path) -> Content:
    """Return the plates of BMClab's standing on two plates by the names of its columns; N, N.m, m, y up."""
    table = np.genfromtxt(path, names=True)
    plates = []
    for side in ("R", "L"):
        names = {kind: [f"{side}{kind}_{axis}" for axis in "XYZ"] for kind in ("GRF", "COP")}
        force, cop = (np.column_stack([table[name] for name in names[kind]]) for kind in ("GRF", "COP"))
        moment = table[f"{side}FREEMOMENT_Y"][:, None] * np.eye(3)[1]
        plates.append(Plate(force, cop, moment, 1.0 / float(table["Time"][1])))
    return Content(plates)


READERS: dict[str, Callable[[Path], Content]] = {
    "ezc3d": from_ezc3d,
    "opensim": from_opensim,
    "cortex": from_cortex,
    "bmclab": from_bmclab,
    "bmclab_two": from_bmclab_two,
}


def differences(path: Path, entry: dict[str, Any]) -> tuple[dict[str, float], str]:
    """Return the largest differences of a file, and a description of it: plates, rate, peak force.

    Raises:
        RecordingError: bipedsim refuses the file.
    """
    theirs = READERS[entry["reader"]](path)
    found = {"samples": theirs.samples if theirs.labels else np.inf}
    if not theirs.plates:
        return found, f"no plates, {read_content(path).points.shape[1]} points"
    rotation = UPRIGHT[entry.get("up", "z")]
    trial = read_trial(path)
    if len(trial.plates) != len(theirs.plates):
        return {"plates": np.inf}, f"{len(trial.plates)} plates, the other reader finds {len(theirs.plates)}"
    peak = 0.0
    for k, (plate, other) in enumerate(zip(trial.plates, theirs.plates, strict=True)):
        sign = -1.0 if k + 1 in entry.get("load", []) else 1.0
        force, moment = (sign * values @ rotation.T for values in (other.force, other.moment))
        loaded = force[:, 2] > LOADED
        # About a point on the line of action, the moment has no part along the floor.
        about = (moment + np.cross(other.point @ rotation.T - np.nan_to_num(plate.cop(0.0)), force))[loaded]
        normal = plate.geometry.up * plate.geometry.rotation[:, 2]
        free = about @ normal
        arm = np.linalg.norm(about - free[:, None] * normal, axis=1) / force[loaded, 2]
        apart = {
            "force_N": _apart(plate.force(), force),
            "rate": abs(plate.geometry.rate - other.rate) / plate.geometry.rate,
            "cop_mm": 1e3 * float(arm.max(initial=0.0)),
            "twist_Nm": _apart(plate.free_moment()[loaded], free),
        }
        found |= {name: max(found.get(name, 0.0), value) for name, value in apart.items()}
        peak = max(peak, float(force[:, 2].max()))
    return found, f"{len(trial.plates)} plates, {trial.plates[0].geometry.rate:.6g} Hz, {peak:.0f} N"


def is_as_stated(found: dict[str, float] | str, stated: dict[str, Any]) -> bool:
    """Return whether a file has the stated differences, and no others above the tolerances.

    Args:
        found: Differences by name, or the place of the refusal.
        stated: The key `differs` of the file; empty without one.
    """
    if isinstance(found, str) or "refused" in stated:
        return found == stated.get("refused")
    expected = {name: value for name, value in stated.items() if name != "why"}
    return expected.keys() <= found.keys() and all(
        math.isclose(value, expected[name], rel_tol=STATED) if name in expected else value <= TOLERANCES.get(name, 0.0)
        for name, value in found.items()
    )


def main() -> int:
    """Read and compare the files. Return 1 if a file differs otherwise than its entry states."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, required=True, help="folder with a clone OWNER+NAME of each repository")
    parser.add_argument("--output", type=Path, help="also write the table here, as Markdown")
    args = parser.parse_args()
    rows, wrong, same, worst = [], [], [], dict.fromkeys(TOLERANCES, 0.0)
    entries = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for entry in entries:
            path = Path(folder) / Path(entry["file"]).name
            path.write_bytes(stored(args.sources, entry))
            found, refused = {}, None
            try:
                found, about = differences(path, entry)
            except RecordingError as error:
                refused = error.place.removeprefix(str(path)).removeprefix(": ")
                about = f"refused: {error}".replace(str(path), path.name).split("\n")[0]
            stated = entry.get("differs", {})
            if not is_as_stated(found if refused is None else refused, stated):
                wrong.append(entry["file"])
                outcome = "DIFFERS"
            else:
                outcome = "as stated" if stated else "equal"
            if outcome == "equal":
                same.append(entry["maker"])
                worst = {name: max(value, found.get(name, 0.0)) for name, value in worst.items()}
            numbers = (f"{found[name]:.1e}" if name in found else "" for name in TOLERANCES)
            cells = [entry["maker"], entry["from"], path.name, entry["reader"], about, *numbers, outcome]
            rows.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    versions = f"ezc3d {version('ezc3d')}, Python {platform.python_version()}"
    titles = ["maker", "repository", "file", "reader", "content", *TOLERANCES, "outcome"]
    lines = [
        f"{len(same)} of {len(entries)} files equal, of {len({*same} - {UNKNOWN})} makers; {versions}",
        "",
        "| " + " | ".join(titles) + " |",
        "|" + " --- |" * len(titles),
        *rows,
        "",
        "Largest differences of the equal files: " + ", ".join(f"{name} {value:.1e}" for name, value in worst.items()),
        "",
        *(f"- {Path(entry['file']).name}: {entry['differs']['why']}" for entry in entries if "differs" in entry),
    ]
    print("\n".join(lines))
    if args.output:
        args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if wrong else 0


def stored(sources: Path, entry: dict[str, Any]) -> bytes:
    """Return the bytes of a file at its commit.

    Raises:
        SystemExit: The clone is missing, or lacks the commit or the file.
    """
    clone = sources / entry["from"].replace("/", "+")
    command = ["git", "-C", str(clone), "show", f"{entry['commit']}:{entry['file']}"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
