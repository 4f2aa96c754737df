"""Robots of others, imported as they are: `python benchmarks/imports.py --sources FOLDER`.

Each file of imports.yaml goes through `bipedsim import` in a process of its own; what came out stands for 10 s and
walks 5 m under `zmp` with the parameters that the import chose. Kept are what the report says was found, guessed and is
doubtful, what a judge finds wrong, times, and how standing and walking went. The judge is no code of the import: the
masses that the file itself adds up to (of MJCF: as MuJoCo adds them), the links that the makers call feet, a sole that
is level and under its foot, and the height of the feet as MuJoCo or pinocchio place them.
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
from bipedsim.errors import BipedSimError
from bipedsim.model import Robot, load_robot
from bipedsim.runs import run

LIST = Path(__file__).with_name("imports.yaml")
KINDS = (FOUND, GUESSED, MENDED, DROPPED, DOUBTS)
STAND = 10.0
"""How long a robot stands [s]."""
STILL = 0.02
"""Way of the base [m] beyond which a standing robot has slid."""
WALK = 5.0
"""How far it walks [m], at ``SHARE`` of what zmp allows it; then it stops and stands for ``AFTER``."""
SHARE, START, MARGIN, AFTER = 0.9, 1.0, 1.1, 1.5
LIGHT = 0.01
"""Difference of masses [kg] that is none."""


def imported(file: Path, folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """Return what `bipedsim import` of a file says, with its times [s]."""
    command = [sys.executable, "-m", "bipedsim.cli.main", "import", str(file), "--output", str(folder), "--replace"]
    before, begin = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    report = folder / "report.md"
    text = report.read_text(encoding="utf-8") if report.is_file() else ""
    parts = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    said = {
        kind: [line[2:] for line in parts.get(TITLES[kind], "").splitlines() if line.startswith("- ")] for kind in KINDS
    }
    wall = time.perf_counter() - begin
    return {
        "exit": done.returncode,
        "error": done.stderr.strip(),
        "cpu_s": round(cpu, 1),
        "wall_s": round(wall, 1),
    } | said


def mass_of(file: Path) -> float | None:
    """Return the mass [kg] that a description adds up to, or None where others than us do not read it."""
    if file.suffix == ".urdf":
        return sum(float(mass.get("value", "0")) for mass in ElementTree.parse(file).iter("mass"))
    if file.suffix == ".xml":
        import mujoco

        model = mujoco.MjModel.from_xml_path(str(file))
        # Of the robot: what lies beside it in the world is no part of it.
        return float(model.body_subtreemass[1:][model.body_parentid[1:] == 0].max())
    return None


def wrong(robot: Robot, row: dict[str, Any], file: Path) -> list[str]:
    """Return what is not as the makers have it."""
    found = []
    mass = mass_of(file)
    if mass is not None and abs(mass - robot.mass) > LIGHT:
        found.append(f"mass {robot.mass:.2f} kg, the file adds up to {mass:.2f} kg")
    model, data = robot.model, robot.model.createData()
    pin.framesForwardKinematics(model, data, robot.q_nominal)
    for link, sole in zip(row["feet"].split(), robot.soles, strict=False):
        joints = {frame.parentJoint for frame in model.frames if frame.name == link}
        if not joints:
            found.append(f"no link {link!r}")
        elif sole.joint_id not in joints:
            found.append(f"foot {sole.name!r} is not {link}")
    if len(robot.soles) != 2:
        found.append(f"{len(robot.soles)} feet")
    for sole in robot.soles:
        place = data.oMi[sole.joint_id] * sole.placement_joint_sole
        if sole.n_vertices > 2 and (tilt := float(np.arccos(min(1.0, place.rotation[2, 2])))) > 1e-3:
            found.append(f"sole {sole.name!r} leans by {np.degrees(tilt):.2g} degrees as it stands")
    return found


def stands(robot: Path) -> dict[str, Any]:
    """Return how standing for 10 s went."""
    recording, summary = run(RunConfig(robot=str(robot), duration=STAND))
    way = np.linalg.norm(recording.base_pose[-1, :2] - recording.base_pose[0, :2])
    fell = summary["fell_at_s"]
    said = f"fell at {fell:.1f} s" if fell is not None else "yes" if way < STILL else "yes, sliding"
    return {"stands": said, "slid_m": round(float(way), 4)}


def walks(robot: Path, params: dict[str, float], folder: Path) -> dict[str, Any]:
    """Return how the walk of 5 m went."""
    speed = SHARE * params["max_forward"]
    stop = START + MARGIN * WALK / speed
    scenario = folder / "walk.yaml"
    plan = {"duration": stop + AFTER, "controller": "zmp", "velocity": [{"at": START, "vx": speed}, {"at": stop}]}
    scenario.write_text(yaml.safe_dump(plan), encoding="utf-8")
    try:
        recording, summary = run(RunConfig(robot=str(robot), scenario=str(scenario)))
    except BipedSimError as error:
        return {"walks": f"no: {error}", "speed_m_s": round(speed, 3)}
    way = float(np.linalg.norm(recording.base_pose[-1, :2] - recording.base_pose[0, :2]))
    fell, gave_up = summary["fell_at_s"], summary.get("gave_up_at_s")
    said = "yes" if way >= WALK else f"no: {way:.2f} m"
    if fell is not None or gave_up is not None:
        said = f"no: fell at {fell if fell is not None else gave_up:.1f} s, {way:.2f} m"
    return {"walks": said, "speed_m_s": round(speed, 3), "distance_m": round(way, 2)}


def judged(row: dict[str, Any], sources: Path, folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """Return the row of a robot: what was said of it, what is wrong, how it stands and walks."""
    origin = row["from"]
    file = sources / (row["file"] if origin.startswith("pip:") else f"{origin.replace('/', '+')}/{row['file']}")
    out: dict[str, Any] = {"name": row["name"], "from": origin, "file": row["file"]}
    if not file.exists():
        return out | {"missing": f"{file} is not there"}
    target = folder / row["name"]
    out |= imported(file, target, env)
    if out["exit"]:
        return out
    robot = load_robot(target / "robot.yaml")
    out |= {"mass_kg": round(robot.mass, 2), "joints": robot.nu, "wrong": wrong(robot, row, file)}
    if not row.get("stands", True) or any(sole.n_vertices < 3 for sole in robot.soles):
        return out | {"stands": "cannot: no flat soles", "walks": ""}
    out |= stands(target / "robot.yaml")
    written = yaml.safe_load((target / "robot.yaml").read_text(encoding="utf-8"))
    params = written.get("controllers", {}).get("zmp")
    return out | (walks(target / "robot.yaml", params, target) if params else {"walks": "no: no parameters chosen"})


def table(rows: list[dict[str, Any]], machine: str) -> str:
    """Return the report as Markdown."""
    here = [row for row in rows if "missing" not in row]
    read = [row for row in here if not row["exit"]]
    walked = [row["name"] for row in read if row["walks"] == "yes"]
    stood = [row for row in read if row["stands"].startswith("yes")]
    lines = [
        "# Robots of others",
        "",
        f"`python benchmarks/imports.py`, {date.today():%Y-%m-%d}, {machine}.",
        "",
        (
            f"{len(read)} of {len(here)} files read as they are, {len(stood)} stand for {STAND:g} s, {len(walked)} "
            f"walk {WALK:g} m. Seconds are CPU time of the whole command, and what the clock said on a busy machine."
        ),
        "",
        (
            "| robot | from | kg | joints | found | guessed | mended | dropped | doubts | wrong | stands | `zmp` walks "
            "| CPU s | s |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in here:
        counts = [str(len(row[kind])) for kind in KINDS]
        if row["exit"]:
            cells = ["", "", *counts, "not read", "", ""]
        else:
            cells = [
                f"{row['mass_kg']}",
                f"{row['joints']}",
                *counts,
                f"{len(row['wrong'])}",
                row["stands"],
                row["walks"],
            ]
        lines.append(f"| {' | '.join([row['name'], row['from'], *cells, str(row['cpu_s']), str(row['wall_s'])])} |")
    lines += ["", "## What was mended, dropped, doubted, and is wrong", ""]
    for row in here:
        said = [f"  - {kind}: {text}" for kind in (MENDED, DROPPED, DOUBTS, "wrong") for text in row.get(kind, [])]
        said += [f"  - not read: {row['error']}"] if row["exit"] else []
        lines += [f"- {row['name']}", *said] if said else []
    missing = [f"- {row['name']}: {row['missing']}" for row in rows if "missing" in row]
    return "\n".join([*lines, *(["", "Not there:", "", *missing] if missing else [])]) + "\n"


def main() -> int:
    """Import all robots, print and keep the report; return 1 where a file was not read."""
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
    found = []
    with tempfile.TemporaryDirectory(prefix="imports_") as work:
        for row in rows:
            one = judged(row, args.sources.resolve(), args.made or Path(work), env)
            found.append(one)
            said = one.get("missing") or one["error"] if one.get("missing") or one["exit"] else ""
            print(
                one["name"], said or f"{one['stands']}; {one['walks']}; {one['cpu_s']} s", one.get("wrong"), flush=True
            )
            if args.output:
                args.output.write_text(json.dumps({"machine": machine, "robots": found}, indent=1) + "\n")
                args.output.with_suffix(".md").write_text(table(found, machine), encoding="utf-8")
    print(table(found, machine))
    return int(any(row.get("exit") for row in found))


if __name__ == "__main__":
    sys.exit(main())
