"""Kernels are compiled for a class of processors, unless the user names another or the processor is not in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bipedsim.numerics import processor

TARGET = """
from bipedsim.numerics.kernel_cache import compiled_with
import bipedsim.numerics.jit
print(compiled_with()["processor"])
"""


def target(code: str = TARGET, **environment: str) -> str:
    """Return the processor for which a new process compiles, as printed by ``code``."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**variables, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(not processor.is_portable(), reason="this processor has no AVX2")
def test_kernels_are_for_a_class_of_processors() -> None:
    assert target() == processor.PORTABLE


def test_the_processor_that_the_user_names_stays() -> None:
    assert target(NUMBA_CPU_NAME="generic") == "generic"


@pytest.mark.long
@pytest.mark.skipif(not processor.is_portable(), reason="this processor has no AVX2")
def test_the_processor_stays_when_a_variable_of_numba_changes(tmp_path: Path) -> None:
    """numba reads its variables again at the next compilation."""
    changed = f"""
import os
from bipedsim.numerics.kernel_cache import compiled_with
import bipedsim.numerics.jit
import numba
os.environ["NUMBA_CACHE_DIR"] = {str(tmp_path)!r}
numba.njit(lambda x: x + 1.0)(2.0)
print(compiled_with()["processor"])
"""
    assert target(changed) == processor.PORTABLE


@pytest.mark.parametrize("missing", ["avx2", "fma", "bmi2"])
def test_a_processor_that_lacks_a_feature_compiles_for_itself(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features = dict.fromkeys(processor._FEATURES, True)
    monkeypatch.setattr(processor.llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(processor.config, "CPU_NAME", None)
    monkeypatch.setattr(processor.config, "CPU_FEATURES", None)
    monkeypatch.setattr(processor.os, "environ", {})
    features[missing] = False
    processor.target_portable()
    assert processor.config.CPU_NAME is None
    features[missing] = True
    processor.target_portable()
    assert processor.config.CPU_NAME == processor.PORTABLE
    assert processor.config.CPU_FEATURES == ""
    # The variables of a job come from another machine.
    features[missing] = False
    processor.target_portable()
    assert (processor.config.CPU_NAME, processor.config.CPU_FEATURES, processor.os.environ) == (None, None, {})
