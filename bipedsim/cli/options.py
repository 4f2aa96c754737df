"""Options that several commands share; those of a run come from the declaration of a run."""

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

from bipedsim.config import RunConfig, from_mapping, help_of, meaning_of, yaml_value
from bipedsim.errors import EXIT_FAILED, EXIT_FELL, EXIT_OK, ConfigError

_FIELDS = {field.name: field for field in dataclasses.fields(RunConfig)}
_PAIRS = {"controller_params": "--set", "contact_params": "--contact-set"}
_EXAMPLES = {
    "--set": ("squat_depth=0.1", "docs/controllers.md"),
    "--contact-set": ("gamma=0.2", "docs/contact_models.md"),
    "--interface-set": ("domain=1", "docs/unitree.md"),
}
"""One of each, and where the others are."""
OF_CONTACT = ("contact_model", "contact_params")
"""Those fields of a run that say what contact is."""


def key_values(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return ``["kp=100", "mode=squat"]`` as a mapping; values are read as YAML scalars.

    Raises:
        ConfigError: A pair has no ``=`` or no name before it.
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigError(f"{option} {pair!r}: expected NAME=VALUE, for example {option} {_EXAMPLES[option][0]}")
        try:
            result[key] = yaml_value(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{option} {pair!r}: {text!r} is no value that YAML can read") from error
    return result


def output_beside(recording: Path, output: Path | None, suffix: str) -> Path:
    """Return where to write, which is beside the recording by default and never the recording itself.

    Raises:
        ConfigError: The output has the name of a recording.
    """
    if output is None:
        # The name of "." and ".." is that of the folder; that of "/" is empty.
        whole = recording if recording.name.strip(".") else Path(os.path.realpath(recording))
        name = whole.stem if os.path.isfile(whole) else whole.name
        output = whole.with_name(name + suffix) if name else whole / f"run{suffix}"
    protected = {".npz", ".mcap", ".yaml"} - {suffix}  # who writes bags overwrites none
    if output.suffix in protected or os.path.realpath(output) == os.path.realpath(recording):
        raise ConfigError(f"--output {output}: this would overwrite a recording; give a name that ends in {suffix}")
    return output


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return short names of runs that tell them apart.

    Raises:
        ConfigError: A run is named twice.
    """
    whole = [os.path.realpath(path) for path in paths]
    if len(set(whole)) < len(whole):
        raise ConfigError("the same recording is named twice: it differs from itself in nothing")
    names = [Path(path).stem if os.path.isfile(path) else Path(path).name for path in whole]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def named_with(others: Sequence[Path]) -> str:
    """Return what the name of a file ends in, before its suffix, that shows a run with these others over it."""
    names = "_".join(name.strip(os.sep).replace(os.sep, "_") for name in names_of(others))
    return f"_with_{names}" if others else ""


def program() -> str:
    """Return what was typed to start this program: ``bipedsim``, or its path where the shell would not find it."""
    path = sys.argv[0]
    if Path(path).name != "bipedsim" or shutil.which("bipedsim") == os.path.abspath(path):
        return "bipedsim"
    return os.path.relpath(path)


def option_name(name: str) -> str:
    """Return the option that a parameter of this name is."""
    return _PAIRS.get(name, f"--{name.replace('_', '-')}")


def add_option(parser: argparse.ArgumentParser, cls: type[Any], name: str, default: Any = None, said: str = "") -> None:
    """Declare the option for one field of a dataclass of parameters.

    Lists take several values, mappings several options NAME=VALUE; --no-NAME switches off what is true by
    default, whose meaning begins with a verb.

    Args:
        parser: Of the command.
        cls: The dataclass, its fields declared by :func:`bipedsim.config.param`.
        name: The field.
        default: What the option is where it is not given; the field's default if None.
        said: What to say of the default.
    """
    field = cls.__dataclass_fields__[name]
    if name in _PAIRS:
        option = option_name(name)
        example, page = _EXAMPLES[option]
        text = f"one of the {field.metadata['doc'].partition(' that ')[0]}, such as {example} ({page}); repeatable"
        parser.add_argument(option, action="append", default=[], metavar="NAME=VALUE", help=text)
        return
    kind = get_type_hints(cls)[name]
    default = field.default if default is None else default
    several = " ".join(default) if isinstance(default, tuple) else default
    # argparse takes % for itself.
    text = help_of(field, said or (str(several) if several is not None else "what the scenario says"))
    text = text.replace("%", "%%")
    if kind is bool:
        option = option_name(f"no_{name}")
        parser.add_argument(option, dest=name, action="store_false", help=f"do not {meaning_of(field)}")
        return
    kind = next(one for one in (int, float, str) if one in (kind, *get_args(kind)))
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
    """Declare an option for each field of a run but those in ``without``; :func:`run_config` reads them."""
    for name in _FIELDS:
        if name not in without:
            add_run_option(parser, name, said="one per control tick" if name == "physics_dt" else "")


def add_fail_on_fall(parser: argparse.ArgumentParser) -> None:
    """Declare the option of commands that a script may ask whether the robot is on its feet."""
    text = f"end with exit code {EXIT_FELL} if the robot fell, or its controller was stopped"
    parser.add_argument("--fail-on-fall", action="store_true", help=text)


def add_span(parser: argparse.ArgumentParser) -> None:
    """Declare the options of commands that hold all rows of a recording: which part of it they read.

    The values are ``start`` and ``stop``, as :func:`bipedsim.load_run` takes them.
    """
    parser.add_argument("--from", dest="start", type=float, metavar="T", help="begin [s] (default: that of the run)")
    parser.add_argument("--to", dest="stop", type=float, metavar="T", help="end [s] (default: that of the run)")


def add_recorded(parser: argparse.ArgumentParser, ground: bool = True) -> None:
    """Declare the options of commands that need robot and ``ground`` of a recording: which, where it does not say."""
    parser.add_argument("--robot", help="name or path of a robot.yaml (default: what the recording says)")
    if ground:
        text = "name or path of a ground YAML (default: what the recording says, else flat)"
        parser.add_argument("--ground", help=text)


def fell_or_stopped(summary: Mapping[str, Any]) -> bool:
    """Return whether the robot of a run fell, or its controller was stopped."""
    return summary.get("fell_at_s") is not None or summary.get("gave_up_at_s") is not None


def code_of(summary: Mapping[str, Any], fail_on_fall: bool) -> int:
    """Return the exit code of a run by what became of robot and controller: a torque that is not finite has failed."""
    from bipedsim.control import failed

    if fail_on_fall and fell_or_stopped(summary):
        return EXIT_FELL
    return EXIT_FAILED if failed(summary.get("gave_up_why") or "") else EXIT_OK


def run_config(args: argparse.Namespace, without: Collection[str] = ()) -> RunConfig:
    """Return the run that the options of :func:`add_run_options` describe; what is ``without`` keeps its default.

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
