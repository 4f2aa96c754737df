"""Declare options that several commands share; options of a run follow from the declaration of a run."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

import yaml

from bipedsim.config import RunConfig, from_mapping, help_of, meaning_of, yaml_fault, yaml_value
from bipedsim.errors import EXIT_FAILED, EXIT_FELL, EXIT_OK, ConfigError

GROUPS = {
    "robot and experiment": ("robot", "controller", "scenario", "ground", "hardware", "duration"),
    "simulation": ("contact_model", "rate", "physics_dt", "seed", "clock", "real_time_factor"),
    "output": ("record", "view", "rviz"),
    "ROS": ("namespace", "remap", "params_file", "log_level"),
}
"""Parameters of a run or of a launch that are options, by their heading in the help."""
IN_SCENARIO = {
    f"--{name}": f"--scenario FILE takes a file with the key `{name}` (docs/scenarios.md)"
    for name in ("posture", "faults", "gantry")
} | {"--friction": "--ground '{flat: {friction_static: 0.2}}' sets it"}
"""Hints for parameters of a run that a scenario or ground contains."""
_METAVARS = {"record": "FOLDER", "params_file": "FILE", "remap": "FROM:=TO", "real_time_factor": "X"}


def key_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Convert ``["kp=100", "mode=squat"]``, the values of ``--set``, to a mapping; values are YAML scalars.

    Raises:
        ConfigError: A pair has no ``=``, no name, or an invalid value.
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigError(f"--set {pair!r}: expected NAME=VALUE, for example --set squat_depth=0.1")
        try:
            result[key] = yaml_value(text)
        except yaml.YAMLError as error:
            raise yaml_fault(error, text, f"--set {key}") from error
    return result


def split_params(pairs: Sequence[str], *tables: Collection[str]) -> list[dict[str, Any]]:
    """Convert the values of ``--set`` and split them by their owner.

    Args:
        pairs: Texts NAME=VALUE for the controller, or OWNER.NAME=VALUE.
        tables: Owners of parameters, such as the contact models.

    Returns:
        The parameters of the controller, and for each table those of its members, with the prefix OWNER.

    Raises:
        ConfigError: See :func:`key_values`.
    """
    groups: list[dict[str, Any]] = [{} for _ in (None, *tables)]
    for name, value in key_values(pairs).items():
        owner = name.partition(".")[0]
        index = next((i for i, table in enumerate(tables, 1) if owner in table and owner != name), 0)
        groups[index][name] = value
    return groups


def topic_pairs(texts: Sequence[str], example: str) -> dict[str, str]:
    """Convert ``["/imu:=/imu/data"]``, the values of ``--remap``, to a mapping.

    Raises:
        ConfigError: A text is not a pair of topics, or a first topic is given twice; the message shows ``example``.
    """
    result: dict[str, str] = {}
    for text in texts:
        first, separator, second = text.partition(":=")
        if not (separator and first.startswith("/") and second.startswith("/")):
            raise ConfigError(f"--remap {text!r}: expected TOPIC:=OTHER, for example {example}")
        if result.setdefault(first, second) != second:
            raise ConfigError(f"--remap {text!r}: {first} is also {result[first]}. Give it one name")
    return result


def output_beside(recording: Path, output: Path | None, suffix: str) -> Path:
    """Return the output path: next to the recording by default, and never the recording itself.

    Raises:
        ConfigError: The output is the recording itself, or has the suffix of a recording.
    """
    if output is None:
        # For "." and "..", the folder's real name is used; the name of "/" is empty.
        folder_or_file = recording if recording.name.strip(".") else Path(os.path.realpath(recording))
        name = folder_or_file.stem if os.path.isfile(folder_or_file) else folder_or_file.name
        output = folder_or_file.with_name(name + suffix) if name else folder_or_file / f"run{suffix}"
    if os.path.realpath(output) == os.path.realpath(recording):
        raise ConfigError("this is the recording itself. Pass -o with the name of another file", f"output {output}")
    if output.suffix in {".npz", ".mcap", ".yaml"} - {suffix}:  # writers of bags do not overwrite
        raise ConfigError(f"this may overwrite a recording. Use a name that ends in {suffix}", f"output {output}")
    return output


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return short names that distinguish runs.

    Raises:
        ConfigError: A run is named twice.
    """
    real_paths = [os.path.realpath(path) for path in paths]
    if len(set(real_paths)) < len(real_paths):
        raise ConfigError("the same recording is named twice. Name different recordings")
    names = [Path(path).stem if os.path.isfile(path) else Path(path).name for path in real_paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def named_with(others: Sequence[Path]) -> str:
    """Return the end of a file name, before its suffix, for a figure that also shows the runs ``others``."""
    names = "_".join(name.strip(os.sep).replace(os.sep, "_") for name in names_of(others))
    return f"_with_{names}" if others else ""


def program() -> str:
    """Return the command that started this program: ``bipedsim``, or its path if it is not on the PATH."""
    path = sys.argv[0]
    if Path(path).name != "bipedsim" or shutil.which("bipedsim") == os.path.abspath(path):
        return "bipedsim"
    return os.path.relpath(path)


def option_name(name: str) -> str:
    """Return the command-line option for a parameter."""
    return f"--{name.replace('_', '-')}"


def add_option(
    parser: argparse._ActionsContainer, cls: type[Any], name: str, text: str = "", default: str = ""
) -> None:
    """Declare the option for one field of a dataclass of parameters. Its value is None if the user does not set it.

    Args:
        parser: Parser of the command, or a group of its options.
        cls: The dataclass; :func:`bipedsim.config.param` declares its fields.
        name: Name of the field.
        text: Help text, if not that of the field.
        default: Text for the default, if not that of the field.
    """
    field = cls.__dataclass_fields__[name]
    kind = get_type_hints(cls)[name]
    many = isinstance(field.default, tuple)
    if kind is bool:
        parser.add_argument(option_name(name), action="store_const", const=True, help=text or meaning_of(field))
        return
    if not default:
        default = "from the scenario" if field.default is None else str(field.default)
    kind = next(candidate for candidate in (int, float, str) if candidate in (kind, *get_args(kind)))
    parser.add_argument(
        option_name(name),
        type=kind,
        nargs="+" if many else None,
        metavar=field.metadata["unit"].upper() or _METAVARS.get(name) or (None if kind is not int else "N"),
        # argparse interprets % in help texts.
        help=(text or help_of(field, "" if field.default in ("", 0.0) else default)).replace("%", "%%"),
    )


def add_set(parser: argparse._ActionsContainer, text: str = "") -> None:
    """Declare ``--set``, which :func:`split_params` reads; ``text`` replaces its description."""
    usual = "parameter of the controller, such as squat_depth=0.1, or of the contact model, such as one_step.gamma=0.2"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=f"{text or usual}; repeatable")


def add_groups(
    parser: argparse.ArgumentParser,
    cls: type[Any],
    names: Collection[str],
    text: str = "",
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, argparse._ArgumentGroup]:
    """Declare an option for each of the fields ``names`` of a run or of a launch, in :data:`GROUPS`.

    Args:
        parser: Parser of the command.
        cls: The dataclass with the fields.
        names: Names of fields; those without a group get no option.
        text: Help text of all options, if not those of the fields.
        defaults: Texts for defaults, if not those of the fields.

    Returns:
        The groups by their heading. A command adds its own options to them.
    """
    groups = {title: parser.add_argument_group(title) for title in GROUPS}
    for title, members in GROUPS.items():
        for name in members:
            if name in names:
                add_option(groups[title], cls, name, text, defaults.get(name, ""))
    return groups


def add_run_options(parser: argparse.ArgumentParser) -> dict[str, argparse._ArgumentGroup]:
    """Declare the options that :func:`run_config` reads, and return their groups by heading."""
    groups = add_groups(
        parser, RunConfig, RunConfig.__dataclass_fields__, defaults={"physics_dt": "one per control tick"}
    )
    add_set(groups["simulation"])
    return groups


def add_fail_on_fall(parser: argparse._ActionsContainer) -> None:
    """Declare the option with which a script detects a fall by the exit code."""
    text = f"exit with code {EXIT_FELL} if the robot fell or its controller was stopped"
    parser.add_argument("--fail-on-fall", action="store_true", help=text)


def add_span(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the time span that a command reads from a recording.

    The values are ``start`` and ``stop``, as for :func:`bipedsim.load_run`.
    """
    parser.add_argument(
        "--from", dest="start", type=float, metavar="T", help="start time [s] (default: start of the run)"
    )
    parser.add_argument("--to", dest="stop", type=float, metavar="T", help="end time [s] (default: end of the run)")


def add_recorded(parser: argparse.ArgumentParser, ground: bool = True) -> None:
    """Declare the options for robot and ``ground`` of a recording that does not name them."""
    parser.add_argument("--robot", help="name or path of a robot.yaml (default: from the recording)")
    if ground:
        text = "name or path of a ground YAML (default: from the recording, else flat)"
        parser.add_argument("--ground", help=text)


def fell_or_stopped(summary: Mapping[str, Any]) -> bool:
    """Return whether the robot of a run fell, or its controller was stopped."""
    return summary.get("fell_at_s") is not None or summary.get("gave_up_at_s") is not None


def code_of(summary: Mapping[str, Any], fail_on_fall: bool) -> int:
    """Return the exit code of a run from the state of robot and controller; a non-finite torque is a failure."""
    from bipedsim.analysis import ControllerStop

    if fail_on_fall and fell_or_stopped(summary):
        return EXIT_FELL
    stop = ControllerStop.read(summary)
    return EXIT_FAILED if stop is not None and stop.failed else EXIT_OK


def chosen(args: argparse.Namespace, cls: type[Any]) -> dict[str, Any]:
    """Return the fields of a dataclass of parameters that the user has set by options."""
    values = ((name, getattr(args, name, None)) for name in cls.__dataclass_fields__)
    return {name: value for name, value in values if value is not None}


def run_config(args: argparse.Namespace) -> RunConfig:
    """Return the run that the options of :func:`add_run_options` define.

    Raises:
        ConfigError: A value is wrong.
    """
    from bipedsim.contact import CONTACT_MODELS

    controller_params, contact_params = split_params(args.set, CONTACT_MODELS)
    params = {"controller_params": controller_params, "contact_params": contact_params}
    return from_mapping(RunConfig, {**chosen(args, RunConfig), **params}, "options")
