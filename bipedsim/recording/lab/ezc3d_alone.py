"""ezc3d in a process of its own: ``python -m bipedsim.recording.lab.ezc3d_alone FILE`` writes what it found to stdout.

ezc3d trusts the counts and lengths in a file. A single wrong byte may have it read beyond its memory, which no
``except`` catches, ask for hundreds of gigabytes, or loop for hours: here that ends this process and nobody else's.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.errors import RecordingError

MEMORY = 2 << 30
"""Bytes that reading may take besides those that the file's size explains: libraries are a quarter of it."""
PER_BYTE = 64
"""Bytes of memory for each of the file: a sample of 2 bytes becomes one of 8, and is copied twice."""
PATIENCE = 30
"""Processor time that reading may take [s], and a second more for each megabyte: a clock would count others, too."""
LONGEST = 20
"""Times as long it may last on a clock, as it might wait for something and compute nothing."""


def read_alone(path: Path) -> dict[str, Any]:
    """Return what ezc3d finds in a file: ``parameters``, ``header`` and ``data`` as its own object has them.

    Raises:
        RecordingError: It found no C3D file, or came to grief over it.
    """
    size = path.stat().st_size
    paths = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    seconds = PATIENCE + size // 1_000_000
    command = [sys.executable, "-m", __name__, os.fspath(path), str(MEMORY + PER_BYTE * size), str(seconds)]
    damaged = f"{path}: damaged, or no C3D file"
    whole = "if there is a whole copy, read that"
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            check=False,
            timeout=LONGEST * seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise RecordingError(f"{damaged}: ezc3d had not read it after {error.timeout:.0f} s; {whole}") from error
    if done.returncode == -signal.SIGXCPU:
        raise RecordingError(f"{damaged}: ezc3d had not read it after {seconds} s of computing; {whole}")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said and done.returncode > 0 else f"ezc3d ended with signal {-done.returncode}"
        raise RecordingError(f"{damaged} ({why}); {whole}")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as found:
        data = {"points": found["points"], "analogs": found["analogs"]}
        return {**json.loads(str(found["about"])), "data": data}


def main() -> int:
    """Read the file that the command line names, within the memory and processor time that it allows."""
    path, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # Signal XCPU comes at the first of the two, which ends the process.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import ezc3d

    try:
        c3d = ezc3d.c3d(path)
        parameters = {
            group: {name: {"value": np.asarray(one["value"]).tolist()} for name, one in rows.items() if "value" in one}
            for group, rows in c3d["parameters"].items()
        }
        header = {part: dict(c3d["header"][part]) for part in ("points", "analogs")}
        out = io.BytesIO()
        about = json.dumps({"parameters": parameters, "header": header})
        np.savez(out, about=np.array(about), points=c3d["data"]["points"], analogs=c3d["data"]["analogs"])
    except Exception as error:
        # Damaged bytes raise whatever ezc3d meets.
        print(" ".join(f"{type(error).__name__}: {error}".split()), file=sys.stderr)
        return 1
    sys.stdout.buffer.write(out.getbuffer())
    return 0


if __name__ == "__main__":
    sys.exit(main())
