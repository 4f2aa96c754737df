"""Declare and read the options that several studies share. Every help imports this module, so it must import fast."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from bipedsim.cli import add_option, option_name
from bipedsim.config import RunConfig, check, from_mapping, read_yaml, to_json, yaml_fault, yaml_value
from bipedsim.errors import ConfigError
from bipedsim_studies.study.limited import LIMIT

T = TypeVar("T")
FIGURES = (".png", ".pdf", ".svg", ".jpg")
"""Suffixes of figures; those of pages are :data:`bipedsim.view.PAGES`."""
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


def add_parallel(parser: argparse.ArgumentParser, jobs: str = "") -> None:
    """Declare the option that :func:`parallel` reads. ``jobs`` is the default, empty for one process per core."""
    text = f"number of processes, or address of a dask scheduler (docs/study.md; default: {jobs or 'all cores'})"
    parser.add_argument("--jobs", default=jobs, metavar="N|ADDRESS", help=text)


def parallel(args: argparse.Namespace, limit: float) -> Parallel:
    """Return the distribution of the work that the options define.

    Args:
        args: Options of the command.
        limit: Maximum wall time of a piece of work [s].

    Raises:
        ConfigError: ``--jobs`` is neither a positive number nor an address.
    """
    progress = shows_progress(args)
    if ":" in args.jobs:
        return Parallel(cores(), args.jobs, limit, progress)
    if args.jobs and not (args.jobs.isdecimal() and int(args.jobs)):
        raise ConfigError("must be a number of at least 1, or an address such as tcp://HOST:8786", "--jobs", args.jobs)
    return Parallel(int(args.jobs or cores()), limit=limit, progress=progress)


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0))


def add_settings(parser: argparse.ArgumentParser, cls: type[Any], options: Sequence[str], page: str) -> None:
    """Declare the file with the fields of a dataclass of settings, and an option for the most common ones.

    Args:
        parser: Parser of the command.
        cls: The dataclass. Its field ``run``, if it has one, is a :class:`~bipedsim.config.RunConfig`.
        options: Fields with an option. ``run.NAME`` is a parameter of the run.
        page: Documentation page that lists all fields.
    """
    text = f"settings as a YAML file, or as '{{KEY: VALUE}}' ({page}); the options override them"
    parser.add_argument("settings", nargs="?", default="", metavar="SETTINGS", help=text)
    for option in options:
        name = option.removeprefix(_OF_RUN)
        if name == option:
            field = cls.__dataclass_fields__[name]
            default = " ".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
            text = ("name, or " if field.metadata["names"] else "") + field.metadata["doc"]
            add_option(parser, cls, name, text + (f" (default: {default})" if default else ""))
        else:
            add_option(parser, RunConfig, name, "as for bipedsim run")


def in_settings(*names: str) -> dict[str, str]:
    """Return hints for options that a command does not have because the settings contain ``names``."""
    hints = {}
    for name in names:
        key = f"{{run: {{{name.removeprefix(_OF_RUN)}: ...}}}}" if name.startswith(_OF_RUN) else f"{{{name}: ...}}"
        option = "--set" if name.endswith("controller_params") else option_name(name.removeprefix(_OF_RUN))
        hints[option] = f"it is a key of SETTINGS: '{key}', or the same in a YAML file"
    return hints


def read_settings(args: argparse.Namespace, cls: type[T], options: Sequence[str]) -> T:
    """Return the settings that the arguments of :func:`add_settings` define. Options replace values of the file.

    Raises:
        ConfigError: The file is missing, or a value is invalid.
    """
    text, folder = args.settings, None
    if text.lstrip().startswith("{"):
        try:
            values = yaml_value(text)
        except yaml.YAMLError as error:
            raise yaml_fault(error, text, "SETTINGS") from error
    elif text:
        values, folder = read_yaml(Path(text)), Path(text).parent
    else:
        values = {}
    settings: Any = from_mapping(cls, values, text if folder else "SETTINGS", folder)
    given: dict[str, Any] = {}
    of_run: dict[str, Any] = {}
    for option in options:
        name = option.removeprefix(_OF_RUN)
        value = getattr(args, name)
        if value is not None:
            (given if name == option else of_run)[name] = tuple(value) if isinstance(value, list) else value
    if of_run:
        given["run"] = replace(settings.run, **of_run)
    settings = replace(settings, **given)
    check(settings, "options")
    result: T = settings
    return result


def add_output(parser: argparse.ArgumentParser, plot: bool = True, page: bool = False) -> None:
    """Declare the options that :func:`output` uses; ``--plot`` only if ``plot``, also for HTML if ``page``."""
    if plot:
        what = "a page (.html) or the figure" if page else "the figure"
        parser.add_argument("--plot", type=_figure, metavar="FILE", help=f"write {what} (.png, .pdf or .svg)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON only")


def _figure(text: str) -> Path:
    """Return the path of a figure. Another suffix is refused before the work, which may take hours."""
    from bipedsim.view import PAGES  # only here, because every help imports this module

    path, known = Path(text), (*FIGURES, *PAGES)
    if path.suffix not in known:
        raise argparse.ArgumentTypeError(f"{text}: choose a name that ends in one of {', '.join(known)}")
    return path


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
