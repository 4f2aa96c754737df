"""The table of commands: each is found, explained, and loaded when it is named."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys

import pytest

from bipedsim.cli.commands import COMMANDS, make_parser
from bipedsim.cli.main import main
from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import CONTROLLERS
from bipedsim.ground import GROUNDS
from bipedsim.model import PRESETS
from bipedsim.runs import SCENARIO_FILES
from bipedsim.view import PANELS

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
        (["up", "--duration", "fast"], "duration = 'fast' must be a number, without a unit, for example 1\n"),
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
        assert own, "it begins with what the command has"
        assert set(own) <= parser._option_string_actions.keys()
        assert set(re.findall(r"`bipedsim ([\w-]+)", text)) <= {*COMMANDS}
