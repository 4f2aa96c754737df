"""Declare options that several commands share; options of a run follow from the declaration of a run."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml

from bipedsim.config import RunConfig, from_mapping, help_of, meaning_of, yaml_fault, yaml_value
from bipedsim.errors import EXIT_FAILED, EXIT_FELL, EXIT_OK, ConfigError

_FIELDS = {field.name: field for field in dataclasses.fields(RunConfig)}
_PAIRS = {"controller_params": "--set", "contact_params": "--contact-set"}
_EXAMPLES = {
    "--set": ("squat_depth=0.1", "docs/controllers.md"),
    "--contact-set": ("gamma=0.2", "docs/contact_models.md"),
    "--interface-set": ("domain=1", "docs/unitree.md"),
}
"""Option to an example and the documentation page."""
OF_CONTACT = ("contact_model", "contact_params")
"""Fields of a run that define the contact model."""


def key_values(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Convert ``["kp=100", "mode=squat"]`` to a mapping; values are YAML scalars.

    Raises:
        ConfigError: A pair has no ``=``, no name, or an invalid value.
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigError(f"{option} {pair!r}: expected NAME=VALUE, for example {option} {_EXAMPLES[option][0]}")
        try:
            result[key] = yaml_value(text)
        except yaml.YAMLError as error:
            raise yaml_fault(error, text, f"{option} {key}") from error
    return result


def output_beside(recording: Path, output: Path | None, suffix: str) -> Path:
    """Return the output path: next to the recording by default, and never the recording itself.

    Raises:
        ConfigError: The output has the name or the suffix of a recording.
    """
    if output is None:
        # For "." and "..", the folder's real name is used; the name of "/" is empty.
        folder_or_file = recording if recording.name.strip(".") else Path(os.path.realpath(recording))
        name = folder_or_file.stem if os.path.isfile(folder_or_file) else folder_or_file.name
        output = folder_or_file.with_name(name + suffix) if name else folder_or_file / f"run{suffix}"
    protected = {".npz", ".mcap", ".yaml"} - {suffix}  # writers of bags do not overwrite
    if output.suffix in protected or os.path.realpath(output) == os.path.realpath(recording):
        raise ConfigError(f"--output {output}: this would overwrite a recording. Use a name that ends in {suffix}")
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
    return _PAIRS.get(name, f"--{name.replace('_', '-')}")


def add_option(
    parser: argparse.ArgumentParser, cls: type[Any], name: str, default: Any = None, said: str = "", text: str = ""
) -> None:
    """Declare the option for one field of a dataclass of parameters.

    Lists accept several values, and mappings several options NAME=VALUE. --no-NAME switches off a parameter that is
    true by default; its description begins with a verb.

    Args:
        parser: Parser of the command.
        cls: The dataclass; :func:`bipedsim.config.param` declares its fields.
        name: Name of the field.
        default: Default value of the option; the field's default if None.
        said: Text for the default.
        text: Help text, if not that of the field.
    """
    field = cls.__dataclass_fields__[name]
    if name in _PAIRS:
        option = option_name(name)
        example, page = _EXAMPLES[option]
        pairs_text = (
            f"one of the {field.metadata['doc'].partition(' that ')[0]}, such as {example} ({page}); repeatable"
        )
        parser.add_argument(option, action="append", default=[], metavar="NAME=VALUE", help=text or pairs_text)
        return
    kind = get_type_hints(cls)[name]
    default = field.default if default is None else default
    default_text = " ".join(map(str, default)) if isinstance(default, tuple) else default
    text = text or help_of(field, said or (str(default_text) if default_text is not None else "from the scenario"))
    # argparse interprets % in help texts.
    text = text.replace("%", "%%")
    if kind is bool:
        option = option_name(f"no_{name}")
        parser.add_argument(option, dest=name, action="store_false", help=f"do not {meaning_of(field)}")
        return
    kind = next(candidate for candidate in (int, float, str) if candidate in (kind, *get_args(kind)))
    parser.add_argument(
        option_name(name),
        type=kind,
        default=default,
        nargs="+" if isinstance(default, tuple) else None,
        metavar=field.metadata["unit"].upper() or (None if kind is not int else "N"),
        help=text,
    )


def add_run_option(parser: argparse.ArgumentParser, name: str, default: Any = None, said: str = "") -> None:
    """Declare the option for one field of a run; see :func:`add_option`."""
    add_option(parser, RunConfig, name, default, said)


def add_run_options(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """Declare an option for each field of a run except ``without``; :func:`run_config` reads them."""
    for name in _FIELDS:
        if name not in without:
            add_run_option(parser, name, said="one per control tick" if name == "physics_dt" else "")


def add_fail_on_fall(parser: argparse.ArgumentParser) -> None:
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


def run_config(args: argparse.Namespace, without: Collection[str] = ()) -> RunConfig:
    """Return the run that the options of :func:`add_run_options` define; fields in ``without`` keep their default.

    Raises:
        ConfigError: A value is wrong.
    """
    values = {}
    for name in _FIELDS:
        if name in without:
            continue
        option = option_name(name)
        value = getattr(args, option.removeprefix("--").replace("-", "_"))
        if name in _PAIRS:
            value = key_values(value, option)
        if value is not None:
            values[name] = value
    return from_mapping(RunConfig, values, "options")
