"""Processor for which the kernels are compiled.

numba compiles for the processor that it runs on. Kernels that were compiled on another one are then of no use. Here all
processors with AVX2 count as one class, x86-64-v3: their kernels have the same machine code, and a wheel can carry it.
A step takes the same time.
"""

from __future__ import annotations

import os
from typing import Any

import llvmlite.binding as llvm
from numba import config as numba_config

config: Any = numba_config


PORTABLE = "x86-64-v3"
_FEATURES = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "xsave")
"""Features of the class, by LLVM's names; older ones follow from these."""


def is_portable() -> bool:
    """Return whether this processor belongs to the class x86-64-v3."""
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know the features of some processors.
        return False
    return all(features.get(name) for name in _FEATURES)


def target_portable() -> None:
    """Let numba compile for x86-64-v3 if the processor can run it.

    A processor that is named by ``NUMBA_CPU_NAME`` stays. The setting has an effect only before numba compiles its
    first function in a process, and holds for all functions of the process.
    """
    if config.CPU_NAME not in (None, PORTABLE):
        return
    if is_portable():
        config.CPU_NAME, config.CPU_FEATURES = PORTABLE, ""
        # numba reads its variables again when one of them changes, and would then forget the processor.
        os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = PORTABLE, ""
    elif config.CPU_NAME == PORTABLE:
        # A scheduler passes the variables of a process to machines that may lack the features.
        config.CPU_NAME = config.CPU_FEATURES = None
        for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
            os.environ.pop(name, None)
