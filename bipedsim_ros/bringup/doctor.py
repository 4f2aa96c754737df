"""Check this installation and print what to do about each problem (``bipedsim doctor``).

The module itself imports only packages of which a check would be in vain, so that it works where another is missing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import bipedsim
from bipedsim.errors import EXIT_FAILED, EXIT_OK, install

EXTRAS = {
    "robots": "Talos, G1 and iCub",
    "view": "bipedsim view, and figures as HTML",
    "mujoco": "import of MJCF files",
    "policy": "learned policies in ONNX",
    "gym": "the Gymnasium environment",
    "study": "studies on a cluster, and results as Parquet",
    "lab": "tables as Parquet",
    "unitree": "--controller unitree",
}
"""Extra of setup.py to its use. ROS 2 has a check of its own; the other extras are for developers."""
ROS_PACKAGES = {
    "control_msgs": "the action for joint trajectories",
    "simulation_interfaces": "the standard services of simulators",
    "tf2_msgs": "the frames of RViz",
}
"""Package of a ROS 2 installation to its use in sim_node, which pip does not bring."""
MODULES = {"numba": "numba", "numpy": "numpy", "pin": "pinocchio"}
"""Distribution to module of the libraries with a line of their own."""
_PRIORITY = 50  # the default of sim_node
_RMW = "import sensor_msgs.msg, rclpy.utilities; print(rclpy.utilities.get_rmw_implementation_identifier())"


class Check(NamedTuple):
    """Outcome of one check: what was checked and found, and what to do; an advice without a problem is a hint."""

    name: str
    value: str
    advice: str = ""
    is_problem: bool = False
    details: Mapping[str, Any] = MappingProxyType({})

    @property
    def status(self) -> str:
        """``"ok"``, ``"hint"`` or ``"problem"``."""
        return "problem" if self.is_problem else "hint" if self.advice else "ok"


def _version(distribution: str) -> str:
    """Return the version of a distribution; empty if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _requirements(distribution: str, extra: str = "") -> list[Requirement]:
    """Return what a distribution requires on this platform: always, or for ``extra`` alone. Empty if not installed."""
    texts = importlib.metadata.requires(distribution) if _version(distribution) else None
    requirements = list(map(Requirement, texts or ()))
    always = [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    if not extra:
        return always
    return [
        each for each in requirements if each.marker and each not in always and each.marker.evaluate({"extra": extra})
    ]


def _unmet(requirements: list[Requirement]) -> list[str]:
    """Return those requirements that no installed version meets, in the form for pip."""
    found = ((each, _version(each.name)) for each in requirements)
    wrong = (each for each, version in found if not (version and each.specifier.contains(version, prereleases=True)))
    return [f"{each.name}{each.specifier}" for each in wrong]


def _bipedsim() -> Iterator[Check]:
    installed, here, python = _version("bipedsim"), bipedsim.__version__, platform.python_version()
    advice = "" if installed == here else f"pip knows {installed or 'none'}: run `make setup`, or install it with pip"
    yield Check("bipedsim", f"{here} in {Path(bipedsim.__file__).parent}", advice, bool(advice))
    bounds = importlib.metadata.metadata("bipedsim").get_all("Requires-Python") if installed else None
    bound = bounds[0] if bounds else ""
    advice = "" if SpecifierSet(bound).contains(python, prereleases=True) else f"install a Python {bound}"
    yield Check("Python", f"{python}, {sys.executable}", advice, bool(advice))


def _packages() -> Iterator[Check]:
    required = _requirements("bipedsim")
    bounds = [*required, *_requirements("numba"), *_requirements("pin")]
    for name, module in MODULES.items():
        unmet = _unmet([each for each in bounds if each.name == name])
        advice = "; ".join(map(install, unmet))
        try:
            importlib.import_module(module)
        except Exception as error:  # A library that was built for another one raises errors of all kinds.
            advice = advice or f"install it again; it cannot be imported: {error}"
        yield Check(module, _version(name) or "missing", advice, bool(advice), {"unmet": unmet})
    unmet = _unmet([each for each in required if each.name not in MODULES])
    value = f"missing or of another version: {', '.join(unmet)}" if unmet else "all there"
    yield Check("other packages", value, "; ".join(map(install, unmet)), bool(unmet), {"unmet": unmet})


def _ros() -> Iterator[Check]:
    wheel, sourced, advice = _version("ros-rclpy"), os.environ.get("ROS_DISTRO", ""), ""
    if importlib.util.find_spec("rclpy") is None:
        advice = f"only in-process commands work: {install('bipedsim[ros]')}, or source /opt/ros/<distro>/setup.bash"
        yield Check("ROS 2", "none", advice)
        return
    # Where its libraries do not fit, rclpy ends the process.
    done = subprocess.run([sys.executable, "-c", _RMW], capture_output=True, text=True, check=False)
    if done.returncode:
        advice = f"source its setup.bash, or {install('bipedsim[ros]')}; it cannot be imported: {done.stderr.strip()}"
    rmw = done.stdout.strip() or "no RMW"
    if wheel and sourced:
        advice = f"wheels and {sourced} do not mix: unset PYTHONPATH, LD_LIBRARY_PATH and AMENT_PREFIX_PATH"
    source = f"wheel {wheel}" if wheel else sourced or "of an unknown distribution"
    yield Check("ROS 2", f"{source}, {rmw}", advice, bool(advice), {"wheel": wheel, "sourced": sourced, "rmw": rmw})
    missing = {name: use for name, use in ROS_PACKAGES.items() if importlib.util.find_spec(name) is None}
    value = "; ".join(f"{name} is missing: sim_node lacks {use}" for name, use in missing.items()) or "all there"
    packages = " ".join(f"ros-$ROS_DISTRO-{name.replace('_', '-')}" for name in missing)
    advice = f"apt install {packages}, in a ROS 2 installation" if missing else ""
    yield Check("ROS packages", value, advice, details={"missing": list(missing)})


def _kernels() -> Iterator[Check]:
    from bipedsim.numerics import PORTABLE, compiled_with, stored_kernels, why_not_shipped

    stored, why, processor, advice = stored_kernels(), why_not_shipped(), compiled_with()["processor"], ""
    if not stored.writable:
        advice = f"make {stored.folder} writable, or set NUMBA_CACHE_DIR; kernels are now compiled at every start"
    elif why or stored.source == "none":
        advice = "; ".join(filter(None, (why, "bipedsim warmup compiles them")))
    value = f"{stored.files} ({stored.size / 1e6:.0f} MB), from: {stored.source}, new ones go to {stored.folder}"
    details = {**stored._asdict(), "folder": str(stored.folder), "why_not_shipped": why}
    yield Check("kernels", value, advice, not stored.writable, details)
    advice = "" if processor == PORTABLE else f"run bipedsim warmup; the kernels of a wheel are for {PORTABLE}"
    yield Check("processor", processor, advice)


def _machine() -> Iterator[Check]:
    from bipedsim_ros.loop import may_run_urgently
    from bipedsim_ros.wire import left_memory

    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    advice = "end other programs before runs in real time, or commands come late" if cores - load < 1.0 else ""
    yield Check("cores", f"{cores}, load {load:.1f}", advice, details={"cores": cores, "load": load})
    permitted = may_run_urgently(_PRIORITY)
    advice = "" if permitted else "commands come late on a busy machine: docs/ros_interface.md under Real-time priority"
    yield Check("real-time priority", "permitted" if permitted else "refused", advice)
    left = left_memory()
    size = sum(path.stat().st_size for files in left.values() for path in files if path.exists())
    advice = "the next node of bipedsim that starts removes it, and so does `fastdds shm clean`" if left else ""
    value = f"{len(left)} parts ({size / 1e6:.0f} MB) of ROS processes that have ended"
    yield Check("shared memory", value, advice, details={"count": len(left), "bytes": size, "names": sorted(left)})
    threads = os.environ.get("OMP_NUM_THREADS", "")
    advice = "" if threads == "1" else "export OMP_NUM_THREADS=1; threads for small matrices only take cores"
    yield Check("OMP_NUM_THREADS", threads or "not set", advice)
    try:
        yield Check("browser", getattr(webbrowser.get(), "name", "found"))
    except webbrowser.Error:
        yield Check("browser", "none", "open the address that `bipedsim view` prints yourself, or set BROWSER")


def _extras() -> Iterator[Check]:
    for name, use in EXTRAS.items():
        required = _requirements("bipedsim", name)
        installed = bool(required) and not _unmet(required)
        value = "installed" if installed else "not installed" if required else "not for this platform"
        advice = install(f"bipedsim[{name}]") if required and not installed else ""
        yield Check(f"extra {name}", f"{value}; for {use}", advice, details={"installed": installed})


def _bits() -> Iterator[Check]:
    from bipedsim.runs import compare_bits

    bits, advice = compare_bits(), ""
    others = ", ".join(f"{name} is {here}, not {was}" for name, (here, was) in bits.other_versions.items())
    if bits.differing:
        advice = f"bits may differ: {others}" if others else "install bipedsim again; the same versions gave other bits"
    value = f"other than in the reference: {', '.join(bits.differing)}" if bits.differing else "as in the reference"
    yield Check("bits", value, advice, bool(bits.differing) and not others, bits._asdict())


def checks(bits: bool = False) -> Iterator[Check]:
    """Yield the outcome of every check; ``bits`` adds short runs."""
    parts: tuple[Callable[[], Iterator[Check]], ...] = (_bipedsim, _packages, _ros, _kernels, _machine, _extras)
    for part in (*parts, _bits) if bits else parts:
        try:
            yield from part()
        except ImportError as error:
            yield Check(part.__name__.strip("_"), f"not checked: {error}", "install what is missing first", True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.add_argument(
        "--bits", action="store_true", help="simulate short runs, and compare their bits with a reference"
    )


def main(args: argparse.Namespace) -> int:
    """Print every check; return 1 if one is a problem."""
    found = list(checks(args.bits))
    ok = not any(check.is_problem for check in found)
    rows = [{"name": c.name, "value": c.value, "status": c.status, "advice": c.advice, **c.details} for c in found]
    if args.json:
        print(json.dumps({"ok": ok, "checks": rows}, indent=2))
    for check in () if args.json else found:
        print(f"{check.name:20} {check.value}")
        if check.advice:
            print(f"{'':20} {check.status}: {check.advice}")
    return EXIT_OK if ok else EXIT_FAILED
