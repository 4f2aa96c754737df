"""Build the source distribution and the wheels into dist/; called by `make wheel`.

One wheel is for any platform. It compiles its kernels at the first run. The others bring the kernels of one version of
Python, for Linux on x86-64-v3. They were compiled with the pinned numba and numpy. With other versions of these, the
kernels are compiled at the first run, too. pip prefers a wheel with kernels where one fits.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "requirements.txt"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PLATFORM = "manylinux_2_17_x86_64"
LIMIT_MB = 15.0
"""Largest size of a wheel with kernels."""

# Settings of the caller that would lead to another Python or to kernels of another kind.
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_CACHE_DIR", "NUMBA_BOUNDSCHECK")


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command and return its output; end the program with the output of a command that fails."""
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, text=True, stdout=-1, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nmake_wheel: failed: {' '.join(map(str, command))}")
    return done.stdout


def find_python(version: str) -> str:
    """Return the path of an interpreter of this version (as in "3.12"), empty if there is none that starts."""
    command = [f"python{version}", "-c", "import sys; print(sys.executable)"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # A launcher may exist for a version that is not installed.
        return ""


def build_plain(dist: Path, scratch: Path) -> Path:
    """Build the source distribution, and from it the wheel for any platform; return the wheel."""
    metadata = scratch / "metadata"  # In the checkout it would hide that of the installed package.
    metadata.mkdir()
    run(sys.executable, "setup.py", "-q", "egg_info", "--egg-base", metadata, "sdist", "--dist-dir", dist)
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(scratch, filter="data")
    (tree,) = scratch.glob("bipedsim-*")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", dist, tree)
    (wheel,) = dist.glob("*-py3-none-any.whl")
    return wheel


def add_kernels(plain: Path, python: str, scratch: Path) -> Path:
    """Compile the kernels with ``python`` (as in "3.12"), and return the wheel that contains them.

    The kernels are compiled by the installed wheel, outside the tree of the sources.
    """
    interpreter = find_python(python)
    if not interpreter:
        sys.exit(f"make_wheel: there is no python{python} that starts. Install it, or leave this version out")
    uv, environment, unpacked = Path(sys.executable).with_name("uv"), scratch / "venv", scratch / "unpacked"
    run(uv, "venv", "-q", "--python", interpreter, environment)
    run(uv, "pip", "install", "-q", "--python", environment, "--constraint", PINS, plain, cwd=scratch)
    run(sys.executable, "-m", "wheel", "unpack", "-d", unpacked, plain)
    (tree,) = unpacked.iterdir()
    run(environment / "bin" / "bipedsim", "warmup", "--output", tree / "bipedsim" / "kernels", cwd=scratch)
    shutil.rmtree(environment)
    run(sys.executable, "-m", "wheel", "pack", "-d", scratch, tree)
    (packed,) = scratch.glob("*.whl")
    tag = f"cp{python.replace('.', '')}"
    tagged = ("--python-tag", tag, "--abi-tag", tag, "--platform-tag", PLATFORM)
    name = run(sys.executable, "-m", "wheel", "tags", "--remove", *tagged, packed).strip()
    return Path(shutil.move(scratch / name, plain.parent / name))


def main() -> int:
    """Build everything and print a line for each file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder (default: dist)")
    parser.add_argument(
        "pythons", nargs="*", metavar="PYTHON", help=f"versions to compile for (default: those found of {PYTHONS})"
    )
    args = parser.parse_args()
    shutil.rmtree(args.output, ignore_errors=True)
    args.output.mkdir(parents=True)
    too_large = False
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "source").mkdir()
        plain = build_plain(args.output.absolute(), Path(folder) / "source")
        print(f"{plain.name}: {plain.stat().st_size / 1e6:.1f} MB", flush=True)
        for python in args.pythons or [version for version in PYTHONS if find_python(version)]:
            begun = time.monotonic()
            (Path(folder) / python).mkdir()
            wheel = add_kernels(plain, python, Path(folder) / python)
            size = wheel.stat().st_size / 1e6
            too_large |= size > LIMIT_MB
            print(f"{wheel.name}: {size:.1f} MB, {time.monotonic() - begun:.0f} s", flush=True)
    if too_large:
        print(f"make_wheel: a wheel is above {LIMIT_MB:.0f} MB", file=sys.stderr)
    return int(too_large)


if __name__ == "__main__":
    sys.exit(main())
