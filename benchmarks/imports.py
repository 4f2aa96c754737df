"""Import third-party robots without changes: `python benchmarks/imports.py --sources FOLDER`.

Each file of imports.yaml is converted by `bipedsim import --no-walk` in a separate process. The imported robot then
stands for 10 s. The trial walks of the import follow in this process, so that the times of the command exclude them.
The results contain the findings, guesses and warnings of the import report, the errors found by an independent check,
and times. They also contain the outcomes of standing and walking.

The check does not use the import's code. It compares:

- the total mass with the sum in the file (for MJCF, as MuJoCo adds it);
- the feet with the links that the manufacturer calls feet;
- each sole with the horizontal plane.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from bipedsim.config.run import RunConfig
from bipedsim.descriptions.notes import DOUBTS, DROPPED, FOUND, GUESSED, MENDED, TITLES
from bipedsim.model import Robot, load_robot
from bipedsim.runs import DISTANCE, find_walk, run

LIST = Path(__file__).with_name("imports.yaml")
KINDS = (FOUND, GUESSED, MENDED, DROPPED, DOUBTS)
STAND = 10.0
"""Duration of standing [s]."""
STILL = 0.02
"""Displacement of the base beyond which a standing robot has slid [m]."""
LIGHT = 0.01
"""Mass difference that counts as zero [kg]."""


def imported(file: Path, folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """Run `bipedsim import` for a file. Return its report and its times [s]."""
    command = [
        sys.executable,
        "-m",
        "bipedsim.cli.main",
        "import",
        str(file),
        "--output",
        str(folder),
        "--replace",
        "--no-walk",
    ]
    before, begin = os.times(), time.perf_counter()
    process = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    report = folder / "report.md"
    text = report.read_text(encoding="utf-8") if report.is_file() else ""
    parts = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    sections = {
        kind: [line[2:] for line in parts.get(TITLES[kind], "").splitlines() if line.startswith("- ")] for kind in KINDS
    }
    wall = time.perf_counter() - begin
    return {
        "exit": process.returncode,
        "error": (process.stderr.strip() or "robot.yaml does not load") if process.returncode else "",
        "cpu_s": round(cpu, 1),
        "wall_s": round(wall, 1),
    } | sections


def mass_of(file: Path) -> float | None:
    """Return the total mass of a description [kg], or None if no independent reader exists."""
    if file.suffix == ".urdf":
        return sum(float(mass.get("value", "0")) for mass in ElementTree.parse(file).iter("mass"))
    if file.suffix == ".xml":
        import mujoco

        try:
            model = mujoco.MjModel.from_xml_path(str(file))
        except ValueError:  # MuJoCo rejects contact pairs with the floor of a scene that is in another file.
            return None
        # Only the largest tree is the robot. Other bodies in the world do not count.
        return float(model.body_subtreemass[1:][model.body_parentid[1:] == 0].max())
    return None


def check_robot(robot: Robot, row: dict[str, Any], file: Path) -> list[str]:
    """Return the differences from the manufacturer's data."""
    problems = []
    mass = mass_of(file)
    if mass is not None and abs(mass - robot.mass) > LIGHT:
        problems.append(f"mass {robot.mass:.2f} kg, the file adds up to {mass:.2f} kg")
    model, data = robot.model, robot.model.createData()
    pin.framesForwardKinematics(model, data, robot.q_nominal)
    for link, sole in zip(row["feet"].split(), robot.soles, strict=False):
        joints = {frame.parentJoint for frame in model.frames if frame.name == link}
        if not joints:
            problems.append(f"no link {link!r}")
        elif sole.joint_id not in joints:
            problems.append(f"foot {sole.name!r} is not {link}")
    if len(robot.soles) != 2:
        problems.append(f"{len(robot.soles)} feet")
    for sole in robot.soles:
        placement = data.oMi[sole.joint_id] * sole.placement_joint_sole
        if sole.n_vertices > 2 and (tilt := float(np.arccos(min(1.0, placement.rotation[2, 2])))) > 1e-3:
            problems.append(f"sole {sole.name!r} leans by {np.degrees(tilt):.2g} degrees as it stands")
    return problems


def stands(robot: Path) -> dict[str, Any]:
    """Let the robot stand for 10 s, and return the outcome."""
    recording, summary = run(RunConfig(robot=str(robot), duration=STAND))
    distance = np.linalg.norm(recording.base_pose[-1, :2] - recording.base_pose[0, :2])
    fell = summary["fell_at_s"]
    outcome = f"fell at {fell:.1f} s" if fell is not None else "yes" if distance < STILL else "yes, sliding"
    return {"stands": outcome, "slid_m": round(float(distance), 4)}


def walks(robot: Path, params: dict[str, float]) -> dict[str, Any]:
    """Let the robot walk as `bipedsim import` does, and return the outcome of the last trial."""
    trials = find_walk(robot, params)
    last = trials[-1]
    return {
        "walks": "yes" if last.walked else f"no: {last}",
        "speed_m_s": round(last.speed, 3),
        "distance_m": round(last.distance, 2),
        "trials": [str(trial) for trial in trials],
        "params": dict(last.params),
    }


def check_import(row: dict[str, Any], sources: Path, folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """Import and check a robot. Return its row: report, errors, standing and walking."""
    origin = row["from"]
    file = sources / (row["file"] if origin.startswith("pip:") else f"{origin.replace('/', '+')}/{row['file']}")
    result: dict[str, Any] = {"name": row["name"], "from": origin, "file": row["file"]}
    if not file.exists():
        return result | {"missing": f"{file} is not there"}
    target = folder / row["name"]
    report = imported(file, target, env)
    # The report is the same wherever the sources are.
    result |= json.loads(json.dumps(report).replace(f"{sources}/", ""))
    if result["exit"]:
        return result
    robot = load_robot(target / "robot.yaml")
    result |= {"mass_kg": round(robot.mass, 2), "joints": robot.nu, "wrong": check_robot(robot, row, file)}
    if not row.get("stands", True) or not robot.soles or any(sole.n_vertices < 3 for sole in robot.soles):
        return result | {"stands": "cannot: no flat soles", "walks": ""}
    result |= stands(target / "robot.yaml")
    written = yaml.safe_load((target / "robot.yaml").read_text(encoding="utf-8"))
    params = written.get("controllers", {}).get("zmp")
    return result | (walks(target / "robot.yaml", params) if params else {"walks": "no: no parameters chosen"})


def table(rows: list[dict[str, Any]], machine: str) -> str:
    """Return the report as Markdown."""
    present = [row for row in rows if "missing" not in row]
    read = [row for row in present if not row["exit"]]
    walked = [row["name"] for row in read if row["walks"] == "yes"]
    stood = [row for row in read if row["stands"].startswith("yes")]
    lines = [
        "# Robots of others",
        "",
        f"`python benchmarks/imports.py`, {date.today():%Y-%m-%d}, {machine}.",
        "",
        (
            f"{len(read)} of {len(present)} files read as they are, {len(stood)} stand for {STAND:g} s, {len(walked)} "
            f"walk {DISTANCE:g} m. Seconds are CPU time of the import without its trial walks, and wall time on a busy "
            "machine."
        ),
        "",
        (
            "| robot | from | kg | joints | found | guessed | mended | dropped | doubts | wrong | stands | `zmp` walks "
            "| m/s | CPU s | s |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in present:
        counts = [str(len(row[kind])) for kind in KINDS]
        if row["exit"]:
            cells = ["", "", *counts, "", "not read", "", ""]
        else:
            cells = [
                f"{row['mass_kg']}",
                f"{row['joints']}",
                *counts,
                f"{len(row['wrong'])}",
                row["stands"],
                row["walks"],
                f"{row['speed_m_s']:.2f}" if row["walks"] == "yes" else "",
            ]
        lines.append(f"| {' | '.join([row['name'], row['from'], *cells, str(row['cpu_s']), str(row['wall_s'])])} |")
    lines += ["", "## What was mended, dropped, doubted, and is wrong", ""]
    for row in present:
        notes = [f"  - {kind}: {text}" for kind in (MENDED, DROPPED, DOUBTS, "wrong") for text in row.get(kind, [])]
        notes += [f"  - not read: {row['error']}"] if row["exit"] else []
        lines += [f"- {row['name']}", *notes] if notes else []
    missing = [f"- {row['name']}: {row['missing']}" for row in rows if "missing" in row]
    return "\n".join([*lines, *(["", "Not there:", "", *missing] if missing else [])]) + "\n"


def main() -> int:
    """Import all robots, and print and store the report. Return 1 if a file could not be read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sources", type=Path, required=True, help="where the files of imports.yaml are")
    parser.add_argument("--only", nargs="*", help="these robots alone")
    parser.add_argument("--output", type=Path, help="JSON of all that was said; the table beside it as .md")
    parser.add_argument("--made", type=Path, help="keep what the imports wrote here")
    args = parser.parse_args()
    rows = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    rows = [row for row in rows if not args.only or row["name"] in args.only]
    packages = [str(path) for path in (args.sources, args.sources / "share") if path.is_dir()]
    packages += sorted({str(path.parent.parent) for path in args.sources.glob("*/*/package.xml")})
    env = os.environ | {"ROS_PACKAGE_PATH": os.pathsep.join([*packages, os.environ.get("ROS_PACKAGE_PATH", "")])}
    os.environ["ROS_PACKAGE_PATH"] = env["ROS_PACKAGE_PATH"]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    results = []
    with tempfile.TemporaryDirectory(prefix="imports_") as work:
        for row in rows:
            result = check_import(row, args.sources.resolve(), args.made or Path(work), env)
            results.append(result)
            message = result.get("missing") or result["error"] if result.get("missing") or result["exit"] else ""
            print(
                result["name"],
                message or f"{result['stands']}; {result['walks']}; {result['cpu_s']} s",
                result.get("wrong"),
                flush=True,
            )
            if args.output:
                args.output.write_text(json.dumps({"machine": machine, "robots": results}, indent=1) + "\n")
                args.output.with_suffix(".md").write_text(table(results, machine), encoding="utf-8")
    print(table(results, machine))
    return int(any(row.get("exit") for row in results))


if __name__ == "__main__":
    sys.exit(main())
