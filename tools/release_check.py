"""Check a commit before its release and print a table; called by `make release-check`.

It checks the commit at HEAD, in a fresh clone with an empty HOME. All checks together take about an hour on two cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import make_wheel

ROOT = make_wheel.ROOT
IMAGE = "docker/debian.Dockerfile"
OF_CHECKOUT = ("docs", "tools", "test_house.py")
"""Tests of the files of a checkout, which a wheel does not contain."""
OF_ROS = (
    "LD_LIBRARY_PATH",
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "COLCON_PREFIX_PATH",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
)
"""Set by the ROS wheels in the environment that runs this program; inherited, they keep others from their libraries."""
FIRST_RUN = ("run", "--duration", "1", "--output", "first.npz")


class CheckError(Exception):
    """A check that failed; the text says why."""


class CannotCheckError(Exception):
    """A check that cannot be made here; the text says why."""


class Place(NamedTuple):
    """Where the checks work.

    Attributes:
        clone: Fresh clone of the commit.
        scratch: Folder for environments and logs.
        env: Environment of the commands.
    """

    clone: Path
    scratch: Path
    env: Mapping[str, str]

    def run(self, *command: object, cwd: Path | None = None) -> float:
        """Run a command with its output in a log, and return the seconds that it took."""
        words = [str(part) for part in command]
        begun = time.monotonic()
        with (self.scratch / "log.txt").open("a+", encoding="utf-8") as log:
            log.write(f"\n$ {' '.join(words)}\n")
            log.flush()
            done = subprocess.run(words, cwd=cwd or self.clone, env=self.env, stdout=log, stderr=log, stdin=-3)
        if done.returncode:
            raise CheckError(f"exit code {done.returncode}: {' '.join(words)}")
        return time.monotonic() - begun

    def environment(self, python: str, extras: str) -> Path:
        """Install the wheel with these extras into the environment of a Python; return its folder of commands."""
        folder, dist = self.scratch / f"venv{python}", self.clone / "dist"
        if not (interpreter := make_wheel.find_python(python)):
            raise CannotCheckError(f"there is no python{python} that starts")
        if not any(dist.glob("*.whl")):
            raise CheckError("there is no wheel, because the check `wheels` failed or was left out")
        if not folder.exists():
            self.run(interpreter, "-m", "venv", folder)
        pins = ("--constraint", self.clone / "requirements" / "requirements.txt")
        self.run(folder / "bin" / "pip", "install", "--quiet", "--find-links", dist, *pins, f"bipedsim[{extras}]")
        return folder / "bin"


def within(value: float, limit: float, unit: str, digits: int = 0) -> str:
    """Return a figure with its limit, or fail."""
    figure = f"{value:.{digits}f} {unit} of {limit:g}"
    if value > limit:
        raise CheckError(figure)
    return figure


def demo(place: Place) -> str:
    """From a clone to the figure of the demo."""
    return within(place.run("make", "demo"), 90, "s")


def lint(place: Place) -> str:
    """Style, layers and types."""
    place.run("make", "lint")
    return ""


def docs(place: Place) -> str:
    """The site, without broken links."""
    place.run("make", "docs")
    return ""


def tests(place: Place) -> str:
    """The suite and the long tests."""
    place.run("make", "test")
    place.run("make", "test-long")
    return ""


def wheels(place: Place) -> str:
    """Source distribution and wheels, and the size of each wheel."""
    place.run("make", "wheel")
    found = list((place.clone / "dist").glob("*.whl"))
    largest = max(path.stat().st_size for path in found) / 1e6
    return f"{len(found)} wheels, {within(largest, make_wheel.LIMIT_MB, 'MB', 1)}"


def first_run(place: Place, python: str) -> str:
    """The first simulated second of an installed wheel, which compiles nothing."""
    bin = place.environment(python, "ros,robots")

    def stored() -> set[Path]:
        # A writable installation stores kernels next to its sources, any other in the home folder.
        folders = [Path(place.env["HOME"]), *bin.parent.rglob("__pycache__/kernels")]
        return {path for folder in folders for path in folder.rglob("*.nbc")}

    before = stored()
    seconds = place.run(bin / "bipedsim", *FIRST_RUN, cwd=place.scratch)
    if compiled := stored() - before:
        raise CheckError(f"the first run compiled {len(compiled)} kernels")
    return within(seconds, 5, "s", 1)


def suite(place: Place, python: str) -> str:
    """The suite against an installed wheel: the clone without its packages."""
    bin = place.environment(python, "ros,robots,test")
    tree = place.scratch / f"suite{python}"
    for name in ("test", "docs", "config", "launch", "examples", "benchmarks", "requirements", "tools"):
        shutil.copytree(place.clone / name, tree / name)
    for path in place.clone.glob("*.*"):
        if path.is_file():
            shutil.copy(path, tree)
    workers = str(2 * len(os.sched_getaffinity(0)))
    expression = "not long and not slow and not studies"
    pytest = ("-m", "pytest", "-n", workers, "--dist", "worksteal", "-m", expression)
    place.run(bin / "python", *pytest, *(f"--ignore=test/{name}" for name in OF_CHECKOUT), cwd=tree)
    return ""


def image(place: Place) -> str:
    """The Dockerfile for Debian, by Docker or in a root file system of mmdebstrap."""
    if shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0:
        place.run("docker", "build", "--file", IMAGE, "--tag", "bipedsim", ".")
        place.run("docker", "run", "--rm", "bipedsim", *FIRST_RUN)
        return "by Docker"
    if os.getuid() or not shutil.which("mmdebstrap"):
        raise CannotCheckError("needs Docker, or mmdebstrap and root")
    tree = place.scratch / "root"
    place.run("mmdebstrap", "--variant=minbase", "trixie", tree)
    place.run(sys.executable, place.clone / "tools" / "try_dockerfile.py", IMAGE, tree, *FIRST_RUN)
    return "in a root file system"


def checks() -> dict[str, Callable[[Place], str]]:
    """Return all checks by name, in their order."""
    named: dict[str, Callable[[Place], str]] = {one.__name__: one for one in (demo, lint, docs, tests, wheels)}
    for python in make_wheel.PYTHONS:
        named[f"first run {python}"] = partial(first_run, python=python)
        named[f"suite {python}"] = partial(suite, python=python)
    return {**named, image.__name__: image}


def main() -> int:
    """Make the checks and print a line for each; return 1 if one fails."""
    named = checks()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"names of checks, of {list(named)} (default: all)")
    chosen = parser.parse_args().checks or list(named)
    if unknown := [name for name in chosen if name not in named]:
        parser.error(f"there is no check {unknown[0]!r}; choose from {list(named)}")
    scratch = Path(tempfile.mkdtemp(prefix="bipedsim_release_"))
    env = {name: value for name, value in os.environ.items() if name not in (*make_wheel.FOREIGN, *OF_ROS)}
    env.update(HOME=str(scratch / "home"), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST", MPLBACKEND="Agg")
    (scratch / "home").mkdir()
    place = Place(scratch / "clone", scratch, env)
    place.run("git", "clone", "--quiet", ROOT, place.clone, cwd=scratch)
    print(
        f"output of all commands: {scratch / 'log.txt'}\n\n{'check':16}{'result':10}{'minutes':>8}  figure", flush=True
    )
    failed = False
    for name in filter(chosen.__contains__, named):
        begun = time.monotonic()
        try:
            result, figure = "passed", named[name](place)
        except CannotCheckError as why:
            result, figure = "skipped", str(why)
        except CheckError as why:
            result, figure, failed = "FAILED", str(why), True
        print(f"{name:16}{result:10}{(time.monotonic() - begun) / 60:8.1f}  {figure}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
