"""A third-party package adds one entry of each kind by entry points, without a change of bipedsim.

Commands and Python find it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from marks import sampled
from paths import BODIES, ROOT

from bipedsim import load_run

ENTRY_POINTS = {
    "bipedsim.contact_models": {"springs": "walkabout.springs:Penalty"},
    "bipedsim.controllers": {"idle": "walkabout.idle:Idle"},
    "bipedsim.robots": {"walkabout": "walkabout.robots"},
    "bipedsim.grounds": {"walkabout": "walkabout.grounds"},
    "bipedsim.scenarios": {"walkabout": "walkabout.scenarios"},
    "bipedsim.commands": {"greet": "walkabout.commands:GREET"},
    "bipedsim.topics": {"payload": "walkabout.topics:PAYLOAD"},
    "bipedsim.policy_terms": {"patience_left": "walkabout.terms:patience_left"},
}

IDLE = """
from dataclasses import dataclass

import numpy as np

from bipedsim import Command, param


@dataclass(frozen=True)
class IdleParams:
    patience: float = param(1.0, "how long it waits", unit="s", low=0.0)


class Idle:
    Params = IdleParams

    def __init__(self, robot, params, dt):
        self.robot, self.params = robot, params

    def reset(self, observation):
        pass

    def update(self, observation):
        return Command(np.zeros(self.robot.nu))
"""

COMMANDS = """
from bipedsim.cli import CliCommand

GREET = CliCommand("say hello", "Say hello to somebody who is named.", "walkabout.greet")
"""

TOPICS = """
from bipedsim_ros.wire import Topic

PAYLOAD = Topic("/payload", "std_msgs/msg/Float64", "what carries it", "its mass [kg]")
"""

TERMS = """
def patience_left(view, joints):
    return [1.0 - view.seen.t]
"""

GREET = """
from bipedsim.errors import ConfigError


def add_arguments(parser):
    parser.add_argument("name")
    parser.add_argument("--mood", choices=("glad", "grumpy"), default="glad")


def main(args):
    if args.name == "nobody":
        raise ConfigError("nobody is not there")
    print(f"hello {args.name}, {args.mood}")
    return 7
"""


def install(folder: Path, package: str, entry_points: dict[str, dict[str, str]]) -> None:
    """Write the files that an installer creates for a package: its name and its entry points."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in entry_points.items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the package ``walkabout`` is installed."""
    folder = tmp_path_factory.mktemp("site")
    package = folder / "walkabout"
    shutil.copytree(BODIES / "brick", package / "robots" / "cobble")
    for name in ("grounds", "scenarios"):
        (package / name).mkdir()
    for name in ("", "robots", "grounds", "scenarios"):
        (package / name / "__init__.py").touch()
    (package / "grounds" / "ramp.yaml").write_text("slope: {angle_deg: 3.0}\n")
    (package / "scenarios" / "rest.yaml").write_text(
        "description: nothing happens\ncontroller: idle\nground: ramp\nduration: 0.02\n"
    )
    shutil.copy(ROOT / "test" / "support" / "penalty_model.py", package / "springs.py")
    for name, text in (("idle", IDLE), ("commands", COMMANDS), ("greet", GREET), ("topics", TOPICS), ("terms", TERMS)):
        (package / f"{name}.py").write_text(text)
    install(folder, "walkabout", ENTRY_POINTS)
    return folder


def python(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the packages in ``site`` are installed."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    return subprocess.run([sys.executable, *arguments], env=env, cwd=site, capture_output=True, text=True, timeout=500)


def bipedsim(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line where the packages in ``site`` are installed."""
    return python(site, "-m", "bipedsim.cli.main", *arguments)


def test_a_run_takes_robot_scenario_ground_controller_and_contact_model(site: Path, tmp_path: Path) -> None:
    words = ["--robot", "cobble", "--scenario", "rest", "--contact-model", "springs", "--set", "springs.stiffness=2e4"]
    words += ["--set", "patience=2", "--output", str(tmp_path / "run.npz")]
    process = bipedsim(site, "run", *words, "--json")
    assert process.returncode == 0, process.stderr
    summary = json.loads(process.stdout)
    assert (summary["robot"], summary["duration_s"]) == ("brick", 0.02)
    about = {"scenario": "rest", "controller": "idle", "contact_model": "springs", "ground": "ramp"}
    assert load_run(tmp_path / "run.npz").about == about


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "said"),
    sampled(
        [
            (["--set", "patience=-1"], "patience = -1"),
            (["--set", "springs.stiffness=-1"], "stiffness = -1"),
            (["--robot", "cobbel"], "did you mean 'cobble'?"),
            (["--ground", "rampp"], "did you mean 'ramp'?"),
        ]
    ),
)
def test_what_is_wrong_is_named_as_it_is_with_our_own(words: list[str], said: str, site: Path) -> None:
    run = ["run", "--robot", "cobble", "--scenario", "rest", "--contact-model", "springs"]
    process = bipedsim(site, *run, *words)
    assert process.returncode == 2
    assert said in process.stderr


@pytest.mark.long
def test_the_lists_have_them(site: Path) -> None:
    assert "\nof walkabout.robots:\ncobble " in bipedsim(site, "robots").stdout
    rows = [line.split(maxsplit=2) for line in bipedsim(site, "scenarios").stdout.splitlines()]
    assert ["rest", "idle", "nothing happens"] in rows
    printed = " ".join(bipedsim(site, "run", "--help").stdout.split())
    for name in ("rest", "ramp", "springs", "idle"):
        assert f" {name}" in printed


def test_a_command_is_listed_explained_and_run(site: Path) -> None:
    assert " greet say hello " in " ".join(bipedsim(site, "--help").stdout.split())
    assert "Say hello to somebody who is named." in bipedsim(site, "greet", "--help").stdout
    process = bipedsim(site, "greet", "Ann", "--mood", "grumpy")
    assert (process.returncode, process.stdout) == (7, "hello Ann, grumpy\n")
    process = bipedsim(site, "greet", "nobody")
    assert (process.returncode, process.stderr) == (2, "bipedsim greet: error: nobody is not there\n")
    assert "'grea'; did you mean 'greet'?" in bipedsim(site, "grea").stderr
    assert "'gladd'; did you mean 'glad'?" in bipedsim(site, "greet", "Ann", "--mood", "gladd").stderr


@pytest.mark.long
def test_the_python_interface_has_them(site: Path) -> None:
    code = """
from bipedsim import CONTACT_MODELS, CONTROLLERS, get_ground, get_scenario, load_robot, make_controller
robot = load_robot("cobble")
print(robot.name, len(get_ground("ramp").patches), get_scenario("rest").controller, CONTACT_MODELS["springs"].__name__)
print(CONTROLLERS["idle"].__name__, make_controller("idle", robot, {"patience": 3.0}).params.patience)
from bipedsim_ros.wire import TOPICS
print(TOPICS["payload"].name, TOPICS["payload"] in TOPICS.values())
from bipedsim.control.policy.terms import TermInputs, own_term
print(own_term("patience_left").values(TermInputs.at_rest(robot, 1), None))
"""
    process = python(site, "-c", code)
    assert process.stdout == "brick 1 idle Penalty\nIdle 3.0\n/payload True\n[1.0]\n", process.stderr


def test_a_broken_package_leaves_the_rest_alone(tmp_path: Path) -> None:
    install(tmp_path, "wreck", {"bipedsim.commands": {"sink": "no_such_module:SINK"}})
    process = bipedsim(tmp_path, "--help")
    assert process.returncode == 0
    assert " sink not available: its package cannot be imported " in " ".join(process.stdout.split())
    process = bipedsim(tmp_path, "sink")
    assert process.returncode == 2
    assert "command 'sink' is no_such_module:SINK, which cannot be imported" in process.stderr


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    for package in ("first", "second"):
        install(tmp_path, package, {"bipedsim.commands": {"twin": f"{package}:TWIN"}})
    process = bipedsim(tmp_path, "robots")
    assert process.returncode == 2
    assert "two packages call their command 'twin': first:TWIN and second:TWIN" in process.stderr
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "__init__.py").touch()
    (tmp_path / "third" / "flat.yaml").write_text("flat: {}\n")
    shutil.rmtree(tmp_path / "second-1.0.dist-info")
    install(tmp_path, "third", {"bipedsim.grounds": {"third": "third"}})
    process = bipedsim(tmp_path, "run", "--ground", "flat")
    assert process.returncode == 2
    assert "two files are the ground 'flat'" in process.stderr
