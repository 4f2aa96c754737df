"""The table of commands: each is found, explained, and loaded when it is named."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
from typing import Any

import pytest

from bipedsim.cli.commands import COMMANDS, make_parser
from bipedsim.cli.main import main
from bipedsim.cli.options import GROUPS, option_name, split_params
from bipedsim.config import RunConfig
from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import CONTROLLERS
from bipedsim.ground import GROUNDS
from bipedsim.model import PRESETS
from bipedsim.runs import SCENARIO_FILES
from bipedsim.view import PANELS
from bipedsim_studies.bench.settings import BenchSettings
from bipedsim_studies.compare.settings import CompareSettings
from bipedsim_studies.push_map.settings import PushMapSettings
from bipedsim_studies.stability.settings import PoincareSettings

HEAVY = ("numpy", "numba", "pinocchio", "scipy", "matplotlib", "rclpy")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "usage: bipedsim" in capsys.readouterr().out


def test_the_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for name, command in COMMANDS.items():
        assert f"{name} {command.help}" in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str) -> None:
    assert len(COMMANDS[name].description) > 60


@pytest.mark.parametrize("name", ["plot", "export", "robots", "scenarios", "warmup"])
def test_the_example_of_a_help_text_is_a_command(name: str) -> None:
    text = COMMANDS[name].description.partition("Example: ")[2]
    for example in text.split(", then "):
        program, *words = example.split()
        assert program == "bipedsim"
        make_parser().parse_args(words)


@pytest.mark.parametrize(
    "words",
    [["--help"], *([name, "--help"] for name in ("run", "compare", "reproduce", "study", "score"))],
)
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = f"""
import sys
from bipedsim.cli.main import main
try:
    main({words})
except SystemExit:
    print(*(name for name in {HEAVY} if name in sys.modules), sep=", ", file=sys.stderr)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stderr.strip() == ""


def test_the_help_of_run_lists_what_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for names in (SCENARIO_FILES, GROUNDS, PRESETS, CONTACT_MODELS, CONTROLLERS, ("biped14", "compass", "g1", "talos")):
        for name in names:
            assert name in printed


def test_the_panels_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert ", ".join(PANELS) in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc-robot"], "'chekc-robot'; did you mean 'check-robot'? (choose from"),
        (["push"], "'push'; did you mean 'push-map'? (choose from"),
        (["check-robot", "biped14", "--state", "stand"], "'stand'; did you mean 'standing'? (choose from"),
        (["dance"], "invalid choice: 'dance' (choose from"),
        (["run", "--controler", "zmp"], "run: error: unrecognized arguments: --controler zmp; did you mean"),
        (["run", "--controler=zmp"], "did you mean --controller?"),
        (["run", "--qqq"], "usage: bipedsim run"),
        (["up", "--plot=a.png"], "--plot=a.png; --record FOLDER plots the forces, FOLDER/forces.png; `bipedsim plot"),
        (["control", "--json"], "--json; --record FOLDER writes the run, FOLDER/bag, for `bipedsim plot`, `view`"),
        (["run", "--rviz"], "--rviz; --rviz is an option of `bipedsim up` (all options: bipedsim run --help)\n"),
        (["summary", "walk.npz", "--plot", "a.png"], "`bipedsim run`, `bipedsim replay`, `bipedsim describe`, "),
        (["run", "--duration", "5s"], "run: error: --duration: '5s' is no number; give it without a unit, for example"),
        (["run", "--duration", "5s"], " for example --duration 5 (what it means: bipedsim run --help)\n"),
        (["view", "walk.npz", "--port", "8080.5"], "--port: '8080.5' is no whole number; give it without a unit, for"),
        (["animate", "walk.npz", "--from", "0,5 s"], " for example --from 0.5 ("),
        (
            ["up", "--duration", "fast"],
            "up: error: --duration: 'fast' is no number; give it without a unit, for example",
        ),
        (["run", "--faults", "{part: imu}"], "--scenario FILE takes a file with the key `faults`"),
        (["up", "--start", "immediately"], "--params-file FILE takes a file with the parameter `start` of sim_node"),
        (["push-map", "--directions", "8"], "it is a key of SETTINGS: '{directions: ...}', or the same in a YAML file"),
        (["run", "--set", "pk=3"], "unknown parameter 'pk'; did you mean 'kp'? Choices: "),
    ],
)
def test_a_mistyped_choice_is_understood(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(words)
    except SystemExit as caught:
        code = caught.code
    assert code == 2
    printed = capsys.readouterr().err
    assert said in printed
    answered = "number" in said or ("unrecognized" in printed and "--qqq" not in words)
    assert not answered or "usage: " not in printed, "what was wrong, and not all options"


@pytest.mark.parametrize("name", COMMANDS)
def test_what_to_do_in_place_of_an_option_is_told_of_those_that_a_command_has_not(name: str) -> None:
    module = importlib.import_module(COMMANDS[name].module)
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    for option, text in getattr(module, "INSTEAD", {}).items():
        assert option not in parser._option_string_actions
        own = re.findall(r"(?<![\w`])--?[a-z][\w-]*", text)
        assert own or "SETTINGS" in text, "it begins with what the command has"
        assert set(own) <= parser._option_string_actions.keys()
        assert set(re.findall(r"`bipedsim ([\w-]+)", text)) <= {*COMMANDS}


MOST_OPTIONS = 201
"""Number of options of all commands together. Before you raise it, see docs/development.md. The last one was
``export --remap``: a user types the names of a bag's topics by hand, and no file describes them."""
SCREEN = 40
"""Lines of a help that fit a screen."""


def parser_of(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"bipedsim {name}", description=COMMANDS[name].description)
    importlib.import_module(COMMANDS[name].module).add_arguments(parser)
    return parser


def test_the_options_of_all_commands_are_few() -> None:
    counts = {
        name: sum(bool(action.option_strings) and action.dest != "help" for action in parser_of(name)._actions)
        for name in COMMANDS
    }
    assert sum(counts.values()) <= MOST_OPTIONS, counts


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_fits_a_screen_or_has_groups(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = parser_of(name)
    if name in ("run", "up"):
        assert {group.title for group in parser._action_groups} > set(GROUPS)
    else:
        assert len(parser.format_help().splitlines()) <= SCREEN


def test_run_and_up_have_the_same_options_of_an_experiment() -> None:
    run, up = (parser_of(name)._option_string_actions for name in ("run", "up"))
    shared = {option_name(name) for title in ("robot and experiment", "simulation") for name in GROUPS[title]}
    assert shared <= up.keys()
    assert shared - run.keys() == {"--clock", "--real-time-factor"}, "there is no wall clock without nodes"


def test_a_parameter_goes_to_the_owner_before_its_name() -> None:
    pairs = ["kp=100", "zmp.step_height=0.05", "exact.gamma=0.1", "unitree.begin=A", "exact=1"]
    controller, contact, bridge = split_params(pairs, CONTACT_MODELS, {"unitree"})
    assert controller == {"kp": 100, "zmp.step_height": 0.05, "exact": 1}
    assert contact == {"exact.gamma": 0.1}
    assert bridge == {"unitree.begin": "A"}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("push-map", PushMapSettings),
        ("compare", CompareSettings),
        ("poincare", PoincareSettings),
        ("bench", BenchSettings),
    ],
)
def test_a_hint_names_a_setting_that_exists(name: str, settings: type[Any]) -> None:
    for hint in importlib.import_module(COMMANDS[name].module).INSTEAD.values():
        run, key = re.findall(r"'\{(run: \{)?(\w+): ", hint)[0]
        assert key in (RunConfig if run else settings).__dataclass_fields__
