"""Behaviour of a launch when a node is killed or stopped, the disk is full, or a folder is read-only.

Every trial is a whole `bipedsim up` of some seconds. The checks are of its exit code, the named node and cause,
tracebacks, remaining processes, time, and the bag. Mounts need root. Without it they are left out, and the report
states this.
"""

from __future__ import annotations

import argparse
import collections
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from report import header, keep, table
from tqdm import tqdm

from bipedsim.errors import BipedSimError, IncompleteWarning
from bipedsim.recording.bag import Bag

NODES = ("sim_node", "controller_node", "recorder_node")
DURATION_S, RATE = 3.0, 500
START_S, RUN_S = 4.0, 4.0
"""Half of the signals come so long at most after a node's process is there, the others after time has begun to pass."""
PAUSE_S = (0.2, 1.5)
HANGS_S, STALLS_S = 300.0, 420.0
"""Maximum duration of a trial, and of one whose node is stopped permanently, which a launch ends after a minute."""
LOSS_LIMIT_S = 0.2
OUTPUT = "output.txt"
_MARK = "BIPEDSIM_CAMPAIGN_TRIAL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this part."""
    parser.add_argument("--count", type=int, default=20, metavar="N", help="of each signal (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="trials at a time (default: %(default)s)")
    parser.add_argument("--domain", type=int, default=88, help="first of --jobs ROS domains (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="begin no further trial after these (default: %(default)s)"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="trials whose name holds this")


@dataclass
class Trial:
    """One launch.

    Attributes:
        what: First column.
        act: Disturbs a running launch and returns details for the report; False if it came too late.
        codes: Exit codes that are right.
        told: Required output, as a regular expression.
        folder: Makes the folder for the run; the usual one is temporary.
        environment: Variables in addition to the usual ones, for that folder.
        limit: Maximum duration [s].
        record: Whether the run is recorded.
    """

    what: str
    act: Callable[[subprocess.Popen[bytes], Path], dict[str, Any] | None]
    codes: tuple[int, ...]
    told: str
    folder: Callable[[Path], Any] | None = None
    environment: Callable[[Path], dict[str, str]] = field(default=lambda _: {})
    limit: float = HANGS_S
    record: bool = True


def processes(mark: str) -> dict[int, str]:
    """Return the command line of every process of a trial."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if f"{_MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # It has ended.
    return found


def find(up: subprocess.Popen[bytes], mark: str, node: str) -> int | None:
    """Return the process of a node once it exists; None if the launch ends before."""
    if node == "bipedsim up":
        return up.pid
    while up.poll() is None:
        for pid, command in processes(mark).items():
            if f"bipedsim_ros.nodes.start {node}" in command:
                return pid
        time.sleep(0.02)
    return None


def reach(up: subprocess.Popen[bytes], folder: Path, node: str, moment: float) -> int | None:
    """Wait for a moment: [s] after the node exists, or if negative after time has begun; return the node's process."""
    pid = find(up, folder.name, node)
    while moment < 0.0 and up.poll() is None and b" s simulated" not in (folder / OUTPUT).read_bytes():
        time.sleep(0.01)
    time.sleep(abs(moment))
    return None if up.poll() is not None else pid


def kill(node: str, moment: float) -> Callable[[subprocess.Popen[bytes], Path], dict[str, Any] | None]:
    """Return a function that kills a node at a moment, see :func:`reach`."""

    def act(up: subprocess.Popen[bytes], folder: Path) -> dict[str, Any] | None:
        pid = reach(up, folder, node, moment)
        if pid is None:
            return None
        at = time.time_ns()
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        return {"moment_s": round(moment, 3), "killed_ns": at}

    return act


def pause(node: str, moment: float, length: float) -> Callable[[subprocess.Popen[bytes], Path], dict[str, Any] | None]:
    """Return a function that stops a node at a moment, see :func:`reach`, for ``length`` [s], which may be infinite."""

    def act(up: subprocess.Popen[bytes], folder: Path) -> dict[str, Any] | None:
        pid = reach(up, folder, node, moment)
        if pid is None:
            return None
        try:
            os.kill(pid, signal.SIGSTOP)
            if length < float("inf"):
                time.sleep(length)
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return None
        return {"moment_s": round(moment, 3), "paused_s": round(length, 3)}

    return act


def nothing(_up: subprocess.Popen[bytes], _folder: Path) -> dict[str, Any]:
    """Do no harm but that of the place."""
    return {}


def remove(seconds: float) -> Callable[[subprocess.Popen[bytes], Path], dict[str, Any]]:
    """Return a function that removes the folder of the run at this time [s] after the start."""

    def act(up: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
        reach(up, folder, "sim_node", -seconds)
        shutil.rmtree(folder / "run")
        return {"moment_s": -seconds}

    return act


@contextmanager
def disk(folder: Path, size: str, filled: bool = False, read_only: bool = False) -> Iterator[None]:
    """Put a small disk at ``folder / "disk"``."""
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        if filled:
            with suppress(OSError):
                (place / "filler").write_bytes(bytes(1 << 24))
        if read_only:
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def may_mount() -> bool:
    """Whether disks can be made here."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with disk(Path(folder), "64k"):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def trials(args: argparse.Namespace) -> Iterator[Trial]:
    """Yield all trials."""
    rng = random.Random(args.seed)
    count = 2 if args.quick else args.count

    def moment() -> float:
        return rng.uniform(0.0, START_S) if rng.random() < 0.5 else -rng.uniform(0.0, RUN_S)

    def recorded(node: str) -> bool:
        # Reading the bag takes as long as the run.
        return node == "recorder_node" or rng.random() < 0.3

    for node in (*NODES, "bipedsim up"):
        for _ in range(count if node in NODES else count // 4 or 1):
            ended = r"bipedsim up: .*recorder_node|bipedsim up: .*\bNODE\b .*SIGKILL".replace("NODE", node)
            told = ended if node in NODES else ""
            yield Trial(f"SIGKILL {node}", kill(node, moment()), (1,) if told else (-9,), told, record=recorded(node))
    for node in NODES:
        for _ in range(count):
            # A stop before or after the run, or shorter than a timeout, has no effect, so no report is required.
            yield Trial(
                f"SIGSTOP, SIGCONT {node}",
                pause(node, moment(), rng.uniform(*PAUSE_S)),
                (0,),
                "",
                record=recorded(node),
            )
    for node, told in (
        ("sim_node", r"bipedsim up: simulated time has stood at .*sim_node"),
        ("controller_node", r"bipedsim up: controller_node did not end cleanly \(killed by SIGKILL\)"),
        ("recorder_node", r"bipedsim up: recorder_node did not end cleanly \(killed by SIGKILL\)"),
    ):
        yield Trial(f"SIGSTOP for good {node}", pause(node, -1.0, float("inf")), (1,), told, limit=STALLS_S)
    full, closed = r"(?s)(?=.*No space left on device)(?=.*(make room|elsewhere))", r"(?s).*Read-only file system"
    for size in ("300k", "1m"):
        yield Trial(f"full disk, {size}", nothing, (1,), full, lambda f, size=size: disk(f, size))
    yield Trial("full disk from the start", nothing, (1, 2), full, lambda f: disk(f, "64k", filled=True))
    yield Trial(
        "full disk for temporary files",
        nothing,
        (0,),
        "",
        lambda f: disk(f, "64k", filled=True),
        lambda f: {"TMPDIR": str(f / "disk")},
    )
    yield Trial(
        "full disk for logs",
        nothing,
        (0,),
        "",
        lambda f: disk(f, "64k", filled=True),
        lambda f: {"HOME": str(f / "disk")},
    )
    yield Trial("read-only folder", nothing, (2,), closed, lambda f: disk(f, "1m", read_only=True))
    yield Trial(
        "read-only home",
        nothing,
        (0,),
        "",
        lambda f: disk(f, "1m", read_only=True),
        lambda f: {"HOME": str(f / "disk")},
    )
    yield Trial("folder removed amid the run", remove(1.0), (1,), r"run/bag: .*No such file")


def run(trial: Trial, domain: int, hits: int = 5) -> dict[str, Any]:
    """Return the outcome of a trial; repeat it if the signal came after the end."""
    for _ in range(hits):
        result = _run(trial, domain)
        if result:
            return result
    return {"what": trial.what, "faults": [f"the signal came too late {hits} times"]}


def _run(trial: Trial, domain: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bipedsim-campaign-") as name:
        folder = Path(name)
        if trial.folder is None:
            return _run_in(trial, domain, folder)
        with trial.folder(folder):
            return _run_in(trial, domain, folder)


def _run_in(trial: Trial, domain: int, folder: Path) -> dict[str, Any]:
    extra = trial.environment(folder)
    where = folder / "disk" / "run" if trial.folder is not None and not extra else folder / "run"
    command = [str(Path(sys.executable).with_name("bipedsim")), "up"]
    command += ["--record", str(where)] if trial.record else []
    params_file = folder / "params.yaml"
    params_file.write_text("sim_node: {ros__parameters: {rate_check: warn}}\n", encoding="utf-8")
    command += ["--duration", f"{DURATION_S}", "--rate", f"{RATE}", "--params-file", str(params_file)]
    env = {
        **os.environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "OMP_NUM_THREADS": "1",
        # Shared memory outlives a SIGKILL.
        "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
        _MARK: folder.name,
        **extra,
    }
    log = folder / OUTPUT
    begin = time.monotonic()
    with log.open("wb") as out:
        up = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    done = trial.act(up, folder)
    faults = []
    try:
        code = up.wait(max(1.0, trial.limit - (time.monotonic() - begin)))
    except subprocess.TimeoutExpired:
        # On a busy machine a little CPU is no hang.
        used = sum(map(int, Path(f"/proc/{up.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        cpu = used / os.sysconf("SC_CLK_TCK")
        load = os.getloadavg()[0]
        faults.append(f"it had not ended after {trial.limit:g} s, with {cpu:.1f} s of CPU, at a load of {load:.0f}")
        code = None
    took = time.monotonic() - begin
    end = time.monotonic() + 15.0
    while (left := processes(folder.name)) and time.monotonic() < end and code is not None:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if left:
        faults.append(f"left behind: {'; '.join(left.values())}")
    up.wait()
    if done is None:
        return {}
    said = log.read_text(encoding="utf-8", errors="replace")
    if code not in trial.codes:
        faults.append(f"exit code {code}, not {' or '.join(map(str, trial.codes))}")
    if "Traceback (most recent call last)" in said:
        faults.append("a traceback")
    told = next((line for line in reversed(said.splitlines()) if re.search(trial.told, line)), "") if trial.told else ""
    if trial.told and not re.search(trial.told, said):
        faults.append(f"nothing was said that fits {trial.told!r}")
    bag, loss = _bag(where / "bag", done.pop("killed_ns", 0) if "recorder" in trial.what else 0)
    if loss is not None and loss > LOSS_LIMIT_S:
        faults.append(f"{loss:.3f} s were lost of the bag")
    if bag.startswith("cannot"):
        faults.append(f"bag: {bag}")
    return {
        "what": trial.what,
        "exit_code": code,
        "took_s": round(took, 1),
        **done,
        "said": told or _last(said),
        "bag": bag,
        "loss_s": loss,
        "faults": faults,
        "output": said if faults else "",
    }


def _last(said: str) -> str:
    lines = [line for line in said.splitlines() if line.startswith("bipedsim up:")]
    return lines[-1] if lines else ""


def _bag(path: Path, killed_ns: int) -> tuple[str, float | None]:
    """Return whether a bag is whole, in words, and how long before a SIGKILL it ends [s], if it ran then."""
    if not path.exists():
        return "none", None
    last = 0
    stamp = b""
    states = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IncompleteWarning)
            bag = Bag(path)
            for block in bag.blocks():
                last = max(last, max(int(part.log_time.max()) for part in block.values()))
                for message in block["/joint_states"].messages() if "/joint_states" in block else ():
                    states, stamp = states + 1, bytes(message.data[4:12])
            text = bag.recovered or "whole"
    except BipedSimError as error:
        return f"cannot be read: {error}", None
    t = int.from_bytes(stamp[:4], "little") + 1e-9 * int.from_bytes(stamp[4:], "little")
    running = killed_ns and 0.0 < t < DURATION_S - 2.0 / RATE
    return f"{text} ({states} joint states, t = {t:.3f} s)", round(1e-9 * (killed_ns - last), 3) if running else None


def main(args: argparse.Namespace) -> int:
    """Run this part; return 1 if anything was not as it should be."""
    mounts = may_mount()
    chosen = [trial for trial in trials(args) if args.only in trial.what and (mounts or trial.folder is None)]
    waiting: queue.SimpleQueue[Trial] = queue.SimpleQueue()
    # A random order, so that a campaign that is cut short contains all kinds.
    random.Random(args.seed).shuffle(chosen)
    for trial in chosen:
        waiting.put(trial)
    end = time.monotonic() + 60.0 * args.minutes
    results: list[dict[str, Any]] = []
    with tqdm(total=len(chosen), unit="trial") as bar:

        def work(domain: int) -> None:
            while time.monotonic() < end:
                try:
                    trial = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    result = run(trial, domain)
                except Exception as error:
                    result = {"what": trial.what, "faults": [f"the campaign failed: {error!r}"]}
                results.append(result)
                for fault in result["faults"]:
                    bar.write(f"{trial.what}: {fault}\n{result.get('output', '')}")
                bar.update()

        threads = [threading.Thread(target=work, args=(args.domain + k,)) for k in range(args.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    results.sort(key=lambda result: result["what"])
    figures = {**header(args), "may_mount": mounts, "planned": len(chosen), "trials": results}
    keep(args.output, figures, _text(figures))
    return int(any(result["faults"] for result in results))


def _text(figures: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    groups: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for result in figures["trials"]:
        groups[result["what"]].append(result)
    rows = []
    for what, results in groups.items():
        codes = collections.Counter(result.get("exit_code") for result in results)
        losses = [result["loss_s"] for result in results if result.get("loss_s") is not None]
        rows.append(
            {
                "what": what,
                "trials": len(results),
                "exit codes": ", ".join(f"{count} x {code}" for code, count in codes.items()),
                "longest [s]": max(result.get("took_s", 0.0) for result in results),
                "worst loss [s]": max(losses, default=None),
                "bags with a loss": len(losses),
                "not as it should be": sum(bool(result["faults"]) for result in results),
                "such as it says": next((result["said"] for result in results if result.get("said")), ""),
            }
        )
    lines = ["# Nodes that are killed and stopped, disks that are full\n"]
    lines.append(f"{figures['date']}, {figures['machine']}, {figures['arguments']}\n")
    if not figures["may_mount"]:
        lines.append("Mounting was not permitted: the trials of full and read-only disks are left out.\n")
    lines.append(f"{len(figures['trials'])} of {figures['planned']} trials were run.\n")
    lines.append(table(rows))
    lines.append("Not as it should be:\n")
    faults = [f"- {result['what']}: {fault}" for result in figures["trials"] for fault in result["faults"]]
    lines += faults or ["- nothing"]
    return "\n".join(lines) + "\n"
