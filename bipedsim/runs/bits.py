"""Simulate short runs and compare their bits with those of a reference, for ``bipedsim doctor --bits``."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bipedsim.config import RunConfig, own_content
from bipedsim.numerics import compiled_with
from bipedsim.runs.runner import run

RUNS: Mapping[str, Mapping[str, Any]] = {
    "squat": {"scenario": "squat", "duration": 1.0, "contact_model": "nonlinear_damping"},
    "walk": {"scenario": "walk", "duration": 2.0, "hardware": "realistic", "seed": 3},
    "ball": {"scenario": "ball", "duration": 1.0},
}
"""Settings of the runs, by name."""
REFERENCES = Path(__file__).with_name("bits.json")
"""File with digests of the runs and the versions that made them; ``python -m bipedsim.runs.bits`` writes it."""


_CORES = ("Haswell", "SkylakeX")
"""Names by which OpenBLAS selects its code with and without AVX-512, on all processors of the class x86-64-v3."""
_CORE_NAMES = [f"{prefix}openblas_get_corename{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "")]


class Bits(NamedTuple):
    """Comparison of the runs with a reference.

    Attributes:
        differing: Names of the runs with other bits.
        other_versions: Name to the version here and the version of the reference, where they differ.
    """

    differing: list[str]
    other_versions: dict[str, tuple[str, str]]


def versions() -> dict[str, str]:
    """Return the versions on which the bits of a run may depend, by name (docs/recording.md)."""
    content = own_content()
    libraries = {name: content[name] for name in ("numba", "numpy", "pin", "scipy")}
    processor, libc = compiled_with()["processor"], " ".join(platform.libc_ver())
    return {**libraries, "processor": processor, "BLAS": _blas_core(), "libc": libc}


def _blas_core() -> str:
    """Return for which processor OpenBLAS selected its code, in each loaded copy; empty for another BLAS."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    copies = [ctypes.CDLL(path) for path in {line.split()[-1] for line in lines if "openblas" in line}]
    functions = [getattr(copy, name) for copy in copies for name in _CORE_NAMES if hasattr(copy, name)]
    for function in functions:
        function.restype = ctypes.c_char_p
    return " ".join(sorted({function().decode() for function in functions}))


def digest(settings: Mapping[str, Any]) -> str:
    """Simulate a run and return the digest of its arrays.

    The header is left out, because it names the code. So are empty arrays, such as those of sensors that the robot does
    not have.
    """
    total = hashlib.sha256()
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.npz")
        run(RunConfig(**settings))[0].save(path)
        with np.load(path) as arrays:
            named = {key for key in arrays.files if arrays[key].size} - {"header", "header_crc"}
            for key in sorted(named):
                total.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode() + arrays[key].tobytes())
    return total.hexdigest()


def make_reference() -> dict[str, dict[str, str]]:
    """Simulate the runs and return their digests and the versions here."""
    runs = {name: digest(settings) for name, settings in RUNS.items()}
    return {"versions": versions(), "runs": runs}  # after the runs, when every library is loaded


def compare_bits(path: Path = REFERENCES) -> Bits:
    """Simulate the runs and compare them with the reference whose versions are closest to those here."""
    here = make_reference()

    def other(reference: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[str, str]]:
        pairs = {name: (here["versions"][name], was) for name, was in reference["versions"].items()}
        return {name: (is_here, was) for name, (is_here, was) in pairs.items() if is_here != was}

    reference = min(json.loads(path.read_text(encoding="utf-8")), key=lambda one: len(other(one)))
    differing = [name for name, found in here["runs"].items() if found != reference["runs"].get(name)]
    return Bits(differing, other(reference))


def main() -> None:
    """Write the references, one for each core of OpenBLAS. The processor needs AVX-512."""
    references = []
    for core in _CORES:
        code = "import json; from bipedsim.runs import bits; print(json.dumps(bits.make_reference()))"
        env = {**os.environ, "OPENBLAS_CORETYPE": core}  # OpenBLAS reads it when it is loaded
        done = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True, check=True)
        references.append(json.loads(done.stdout))
    REFERENCES.write_text(json.dumps(references, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
