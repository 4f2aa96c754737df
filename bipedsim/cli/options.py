"""Options that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import CONTROLLERS
from bipedsim.errors import ConfigError
from bipedsim.ground import GROUNDS
from bipedsim.model import PRESETS, ROBOTS
from bipedsim.runs import SCENARIO_FILES

if TYPE_CHECKING:
    from bipedsim.runs import RunSettings

# YAML 1.1 takes 1e-3 and 1.5e3 for texts: it wants 1.0e-3 and 1.5e+3.
_EXPONENT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")


def key_values(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return ``["kp=100", "mode=squat"]`` as a mapping; values are read as YAML scalars.

    Raises:
        ConfigError: A pair has no ``=`` or no name before it.
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigError(f"{option} {pair!r}: expected NAME=VALUE, for example {option} gamma=0.2")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{option} {pair!r}: {text!r} is no value that YAML can read") from error
        if isinstance(value, str) and _EXPONENT.fullmatch(value):
            value = float(value)
        result[key] = value
    return result


def output_beside(recording: Path, output: Path | None, suffix: str) -> Path:
    """Return where to write, which is beside the recording by default and never the recording itself.

    Raises:
        ConfigError: The output has the name of a recording.
    """
    output = output or recording.with_name(recording.stem + suffix)
    if output.suffix in (".npz", ".mcap", ".yaml") or output.resolve() == recording.resolve():
        raise ConfigError(f"--output {output}: this would overwrite a recording; give a name that ends in {suffix}")
    return output


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare what a headless run is, but for the contact model; :func:`run_settings` reads it."""
    parser.add_argument(
        "--scenario",
        default="stand",
        help=f"{', '.join(SCENARIO_FILES)} (see `bipedsim scenarios`), or path of a scenario YAML "
        "(docs/scenarios.md) (default: %(default)s)",
    )
    parser.add_argument(
        "--duration", type=float, metavar="S", help="simulated seconds (default: what the scenario says)"
    )
    add_plant_options(parser)


def add_plant_options(parser: argparse.ArgumentParser) -> None:
    """Declare robot, controller and ground of a run; :func:`plant_settings` reads them."""
    parser.add_argument(
        "--robot",
        default="biped14",
        help=f"{', '.join(name for name in ROBOTS if not ROBOTS.package(name))} (all: `bipedsim robots`) or path of a "
        "robot.yaml (default: %(default)s)",
    )
    parser.add_argument(
        "--controller",
        help=f"{', '.join(CONTROLLERS)}, or package.module:Class of your own (default: that of the scenario)",
    )
    parser.add_argument(
        "--ground",
        help=f"{', '.join(GROUNDS)} or path of a ground YAML (docs/ground.md) (default: that of the scenario)",
    )
    parser.add_argument("--rate", type=float, default=1000.0, metavar="HZ", help="control rate (default: %(default)s)")
    parser.add_argument("--physics-dt", type=float, metavar="S", help="physics step (default: one per control tick)")
    parser.add_argument(
        "--hardware",
        help=f"{', '.join(PRESETS)}, '{{preset: NAME, PARAMETER: VALUE}}' or path of a YAML file (docs/hardware.md) "
        "(default: that of the scenario)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sensors' noise (default: %(default)s)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="parameter of the controller; repeatable"
    )


def add_contact_options(parser: argparse.ArgumentParser) -> None:
    """Declare the contact model and its parameters, ``contact_model`` and ``contact_set``, for :func:`key_values`."""
    parser.add_argument(
        "--contact-model", default="one_step", help=f"{', '.join(CONTACT_MODELS)} (default: %(default)s)"
    )
    parser.add_argument(
        "--contact-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of the contact model; repeatable",
    )


def run_settings(args: argparse.Namespace) -> RunSettings:
    """Return the run that the options of :func:`add_run_options` describe, under the default contact model.

    Raises:
        ConfigError: A ``--set`` is no NAME=VALUE.
    """
    return replace(plant_settings(args), scenario=args.scenario, duration=args.duration)


def plant_settings(args: argparse.Namespace) -> RunSettings:
    """Return the run that the options of :func:`add_plant_options` describe, under the default scenario.

    Raises:
        ConfigError: A ``--set`` is no NAME=VALUE.
    """
    # The simulator, which help needs not wait for.
    from bipedsim.runs import RunSettings

    return RunSettings(
        robot=args.robot,
        controller=args.controller,
        ground=args.ground,
        rate=args.rate,
        physics_dt=args.physics_dt,
        hardware=args.hardware,
        seed=args.seed,
        controller_params=key_values(args.set, "--set"),
    )
