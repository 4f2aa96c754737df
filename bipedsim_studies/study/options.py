"""Declare and read the options that several studies share. Every help imports this module, so it must import fast."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml

from bipedsim.cli import add_option, key_values, option_name
from bipedsim.config import RunConfig, check, from_mapping, read_yaml, to_json, yaml_fault, yaml_value
from bipedsim.errors import ConfigError
from bipedsim_studies.study.limited import LIMIT

T = TypeVar("T")
_OF_RUN = "run."
"""Prefix of the name of a setting that is a parameter of a run."""


@dataclass(frozen=True)
class Parallel:
    """Distribution of the work of a study.

    Attributes:
        jobs: Number of processes of this machine.
        scheduler: Address of a dask scheduler whose workers are used instead; empty for processes of this machine.
        limit: Maximum wall time of a piece of work that another process does [s].
        progress: Whether to show the progress on stderr.
    """

    jobs: int = 1
    scheduler: str = ""
    limit: float = LIMIT
    progress: bool = False

    @property
    def in_this_process(self) -> bool:
        """Whether no other process is needed."""
        return self.jobs == 1 and not self.scheduler


ONE_PROCESS = Parallel()
"""Do the work in this process, or in a single process next to it."""


def add_parallel(parser: argparse.ArgumentParser, jobs: int | None = None) -> None:
    """Declare the options that :func:`parallel` reads. ``jobs`` is the default, None one process per core."""
    parser.add_argument(
        "--jobs", type=int, default=jobs, metavar="N", help=f"number of processes (default: {jobs or 'all cores'})"
    )
    parser.add_argument(
        "--scheduler", default="", metavar="ADDRESS", help="use the workers of this dask scheduler (docs/study.md)"
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=LIMIT,
        metavar="S",
        help="wall time per trial or search [s] (default: %(default)g)",
    )


def parallel(args: argparse.Namespace) -> Parallel:
    """Return the distribution of the work that the options define.

    Raises:
        ConfigError: The number of processes or the time limit is not positive.
    """
    if args.jobs is not None and args.jobs < 1:
        raise ConfigError(f"--jobs {args.jobs} must be at least 1")
    if not args.time_limit > 0.0:
        raise ConfigError(f"--time-limit {args.time_limit:g} s must be above 0")
    return Parallel(args.jobs or cores(), args.scheduler, args.time_limit, shows_progress(args))


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0))


def add_settings(
    parser: argparse.ArgumentParser,
    cls: type[Any],
    options: Sequence[str],
    page: str,
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Declare ``--settings`` for all fields of a dataclass of settings, and an option for the most common ones.

    Args:
        parser: Parser of the command.
        cls: The dataclass. Its field ``run``, if it has one, is a :class:`~bipedsim.config.RunConfig`.
        options: Fields with an option. ``run.NAME`` is a parameter of the run.
        page: Documentation page that lists all fields.
        defaults: Parameters of the run whose default differs from that of ``bipedsim run``, for the help.
    """
    for option in options:
        name = option.removeprefix(_OF_RUN)
        if name == option:
            field = cls.__dataclass_fields__[name]
            default = " ".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
            text = ("name, or " if field.metadata["names"] else "") + field.metadata["doc"]
            text += f" [{field.metadata['unit']}]" if field.metadata["unit"] else ""
            text += f" (default: {default})" if default not in (None, "", MISSING) else ""
            add_option(parser, cls, name, text=text)
        else:
            other = f" (default: {defaults[name]})" if name in defaults else ""
            add_option(parser, RunConfig, name, text=f"as for bipedsim run{other}")
        if not option_name(name).endswith("set"):
            # A value from the file must not be replaced by the default of the option.
            parser.set_defaults(**{name: None})
    text = f"YAML file, or '{{KEY: VALUE}}', with these and more settings, those of a run under `run` ({page})"
    parser.add_argument("--settings", metavar="FILE", default="", help=text)


def read_settings(args: argparse.Namespace, cls: type[T], options: Sequence[str]) -> T:
    """Return the settings that the options of :func:`add_settings` define. Options replace values of the file.

    Raises:
        ConfigError: The file is missing, or a value is invalid.
    """
    text, folder = args.settings, None
    if text.lstrip().startswith("{"):
        try:
            values = yaml_value(text)
        except yaml.YAMLError as error:
            raise yaml_fault(error, text, "--settings") from error
    elif text:
        values, folder = read_yaml(Path(text)), Path(text).parent
    else:
        values = {}
    settings: Any = from_mapping(cls, values, text if folder else "--settings", folder)
    given: dict[str, Any] = {}
    of_run: dict[str, Any] = {}
    for name in options:
        option = option_name(name.removeprefix(_OF_RUN))
        value = getattr(args, option.removeprefix("--no-").removeprefix("--").replace("-", "_"))
        if option.endswith("set"):
            value = key_values(value, option)
        if value not in (None, {}):
            (of_run if name.startswith(_OF_RUN) else given)[name.removeprefix(_OF_RUN)] = (
                tuple(value) if isinstance(value, list) else value
            )
    if of_run:
        given["run"] = replace(settings.run, **of_run)
    settings = replace(settings, **given)
    check(settings, "options")
    result: T = settings
    return result


def add_output(parser: argparse.ArgumentParser, plot: bool = True) -> None:
    """Declare the options that :func:`output` uses; ``--plot`` only if ``plot``."""
    if plot:
        parser.add_argument("--plot", type=Path, metavar="PNG", help="write the figure (.png, .pdf or .svg)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON only")


def shows_progress(args: argparse.Namespace) -> bool:
    """Return whether the command shows its progress: without ``--json``."""
    return not args.json


def output(
    args: argparse.Namespace, as_json: Callable[[], Any], text: Callable[[], str], plot: Callable[[Path], None]
) -> None:
    """Print the results as text, or as JSON with ``--json``, and write the figure of ``--plot``.

    Args:
        args: Options of the command.
        as_json: Returns the results as JSON values.
        text: Returns the results as text.
        plot: Writes the figure.

    Raises:
        RecordingError: The figure cannot be written.
    """
    print(to_json(as_json()) if args.json else text())
    if args.plot:
        plot(args.plot)
        if not args.json:
            print(f"wrote {args.plot}")
