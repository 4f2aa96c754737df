"""Measure the cost of the live view for the loop: a recorded walk in real time, in turn with and without a page.

    python benchmarks/viewer.py --pairs 5 --duration 30

A launch of one second opens the page before the walk, so that the start of Python does not affect the walk. A process
that receives all data of the page replaces the browser, which normally runs on another machine or uses a graphics card.
``--browser`` opens a headless Chromium instead. Its software rendering needs an entire core.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

FIGURES = (
    *("missed_permille", "p50_us", "p99_us", "p999_us", "late_p99_us", "real_time_factor"),
    *("sim_node_core", "controller_node_core"),
)
CHROMIUM = ("--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
BEGIN, END = 6.0, 3.0
"""Times at start and end of a walk that are excluded from the core usage, for loading kernels and ending runs [s]."""
CLIENT = """
import msgspec, sys, time, viser
from viser._messages import ViewerCameraMessage
from websockets.sync.client import connect
from websockets.typing import Subprotocol
camera = ViewerCameraMessage((1, 0, 0, 0), (3, 0, 1), 1, 0.1, 100, 600, 800, (0, 0, 0), (0, 0, 1))
version = Subprotocol(f"viser-v{viser.__version__}")
with connect(sys.argv[1], max_size=None, subprotocols=[version]) as socket:
    # Whoever has told no camera is no client yet.
    socket.send(msgspec.msgpack.encode(camera.as_serializable_dict()))
    print("here", flush=True)
    came = []
    try:
        for message in socket:
            came.append((time.monotonic(), len(message)))
    except KeyboardInterrupt:
        pass
for at, size in came:
    print(at, size)
"""
"""Program that receives all data of the page. At the end, it prints the times [s] and the sizes [B] of the messages."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> dict[str, int]:
    """Return the process ids of the nodes that a process has started, by name."""
    nodes: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            words = (path / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if parent == pid:
            nodes |= {word: int(path.name) for word in words if word.endswith("_node")}
    return nodes


class Viewer:
    """View node and a client of its page; use it as a context manager.

    Args:
        rate: Frames per second.
        browser: Whether the client is a headless Chromium.

    Attributes:
        received: Times [s] and sizes [B] of the received messages.
    """

    def __init__(self, rate: float, browser: bool) -> None:
        self._rate, self._browser = rate, browser
        self.received: list[tuple[float, float]] = []

    def __enter__(self) -> Viewer:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
            file.write(f"view_node: {{ros__parameters: {{frame_rate: {self._rate}, browser: false}}}}\n")
        command = [sys.executable, "-m", "bipedsim.cli.main", "view", "--params-file", file.name]
        self.node = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._client: subprocess.Popen[str] | None = None
        return self

    def look(self, bringup: Sequence[str]) -> None:
        """Connect the client to the page of ``bringup``. Return when it is connected and the launch has ended."""
        assert self.node.stdout is not None
        running = subprocess.Popen(bringup, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        address = next(line for line in self.node.stdout if line.startswith("the page is at")).split()[4].rstrip(":")
        if self._browser:
            chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
            command = [chromium, *CHROMIUM, address]
        else:
            command = [sys.executable, "-c", CLIENT, address.replace("http:", "ws:")]
        self._client = subprocess.Popen(
            ["nice", "-n", "10", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if not self._browser:
            # The first line confirms the connection.
            assert self._client.stdout is not None
            self._client.stdout.readline()
        running.wait()

    def __exit__(self, *_error: object) -> None:
        for process in (self._client, self.node):
            if process is not None:
                process.send_signal(signal.SIGINT if process is self.node or not self._browser else signal.SIGTERM)
                process.wait()
        if self._client is not None and not self._browser and self._client.stdout is not None:
            values = map(float, self._client.stdout.read().split())
            self.received = list(zip(values, values, strict=True))


def walk(args: argparse.Namespace, folder: Path, viewed: bool) -> dict[str, float]:
    """Return the statistics of a walk that is recorded into ``folder``, with a page if ``viewed``."""
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--scenario", args.scenario, "--robot", args.robot]
    command += ["--real-time-factor", f"{args.real_time_factor}"]
    with tempfile.TemporaryFile("w+") as log, ExitStack() as stack:
        viewer = stack.enter_context(Viewer(args.frame_rate, args.browser)) if viewed else None
        if viewer is not None:
            viewer.look([*command, "--duration", "1"])
        command += ["--duration", f"{args.duration}", "--record", str(folder)]
        bringup = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while "controller_node" not in children_of(bringup.pid) and bringup.poll() is None:
            time.sleep(0.1)
        time.sleep(BEGIN)
        pids = {**children_of(bringup.pid), **({} if viewer is None else {"view_node": viewer.node.pid})}
        samples: list[tuple[float, dict[str, float]]] = []
        with suppress(FileNotFoundError):
            while bringup.poll() is None:
                samples.append((time.monotonic(), {name: cpu_seconds(pid) for name, pid in pids.items()}))
                time.sleep(0.1)
        evaluated = [sample for sample in samples if sample[0] + END <= samples[-1][0]]
        if len(evaluated) < 2:
            raise SystemExit(
                f"the walk had ended before it could be measured: --duration {2 * args.duration:g}, or a machine with "
                "less other work, on which it begins sooner"
            )
        (since, before), (until, after) = evaluated[0], evaluated[-1]
        shares = {f"{name}_core": (after[name] - before[name]) / (until - since) for name in pids}
        bringup.wait()
        stack.close()
        # The launch fails if the recorder was too slow, but the statistics of the loop still exist.
        if not (folder / "summary.json").exists():
            log.seek(0)
            raise SystemExit(f"the bring-up failed:\n{log.read()}")
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    trip, late = summary["round_trip_us"], summary["lateness_us"]
    result = {
        "missed_permille": 1e3 * summary["missed_commands"] / summary["ticks"],
        "p50_us": trip["p50"],
        "p99_us": trip["p99"],
        "p999_us": trip["p999"],
        "late_p99_us": late["p99"],
        "real_time_factor": summary["real_time_factor"],
        **shares,
    }
    if viewer is not None and not args.browser:
        sizes = [size for at, size in viewer.received if since <= at < until]
        result["messages_per_s"] = len(sizes) / (until - since)
        result["kB_per_s"] = sum(sizes) / 1e3 / (until - since)
    return result


def main() -> int:
    """Run the walks and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3, help="of walks, without and with a page, in turn")
    parser.add_argument("--seen-first", action="store_true", help="in the first pair; they take turns at it")
    parser.add_argument("--duration", type=float, default=20.0, metavar="S", help="of a walk")
    parser.add_argument("--robot", default="biped14")
    parser.add_argument("--scenario", default="walk")
    parser.add_argument(
        "--real-time-factor", type=float, default=1.0, metavar="X", help="less for a machine that others use, too"
    )
    parser.add_argument("--frame-rate", type=float, default=30.0, metavar="HZ")
    parser.add_argument("--browser", action="store_true", help="look with a headless Chromium")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all figures as JSON")
    args = parser.parse_args()
    runs: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for pair in range(args.pairs):
        # The first run of a pair can be affected by the previous pair. The order therefore alternates, too.
        first = args.seen_first == (pair % 2 == 0)
        for seen in (first, not first):
            with tempfile.TemporaryDirectory(prefix="bipedsim-viewer-") as folder:
                runs[seen].append(walk(args, Path(folder) / "run", seen))
            shown = "  ".join(f"{name} {value:.4g}" for name, value in runs[seen][-1].items())
            print(f"{'seen  ' if seen else 'unseen'}  {shown}", flush=True)
    print(f"\n{'':22}{'unseen':>28}{'seen':>28}{'difference':>28}")
    for name in FIGURES:
        unseen, seen_values = ([run[name] for run in runs[which]] for which in (False, True))
        differences = [b - a for a, b in zip(unseen, seen_values, strict=True)]
        print(f"{name:22}" + "".join(f"{_spread(values):>28}" for values in (unseen, seen_values, differences)))
    for name in ("view_node_core", *(() if args.browser else ("messages_per_s", "kB_per_s"))):
        print(f"{name:22}{'':28}{_spread([run[name] for run in runs[True]]):>28}")
    print("median (least to largest); differences are within a pair")
    if args.output is not None:
        args.output.write_text(json.dumps({"unseen": runs[False], "seen": runs[True]}, indent=1) + "\n")
    return 0


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


if __name__ == "__main__":
    sys.exit(main())
