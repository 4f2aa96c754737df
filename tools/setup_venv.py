"""Make .venv with the pinned packages and bipedsim itself; called by `make setup`, quick when nothing has changed.

Runs on the system's Python before anything is installed, hence with the standard library only.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

NAME = "bipedsim"
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "setup.json"
LOG = VENV / "setup.log"
REQUIREMENTS = Path("requirements", "requirements.txt")
PACKAGE = ("setup.py", "setup.cfg", "package.xml", "bipedsim/__init__.py", "tools/setup_venv.py")

# Settings of the caller that would lead an installation elsewhere, or bring in another installation's packages. The ROS
# wheels re-execute Python once per process tree to find their libraries; their guard, inherited from the process of
# another environment, would suppress that, and the library path would name the other environment.
FOREIGN = {
    "LD_LIBRARY_PATH",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_TARGET",
    "PIP_USER",
    "PYTHONHOME",
    "PYTHONPATH",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
}

OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|name resolution|ConnectTimeout|ProxyError|Network is unreachable"
    r"|Failed to establish a new connection|Connection refused|No route to host"
)

State = dict[str, str]


class SetupError(Exception):
    """Set-up cannot go on; the message says why and what mends it."""


def check_machine() -> None:
    """Raise SetupError unless this machine and this Python can carry the pinned packages."""
    if platform.system() != "Linux" or sys.maxsize < 2**32:
        raise SetupError(f"this set-up is for 64-bit Linux, not for {platform.platform()}")
    missing = []
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        is_default = os.path.realpath("/usr/bin/python3") == os.path.realpath(sys.executable)
        version = "3" if is_default else f"3.{sys.version_info.minor}"
        missing.append(f"python{version}-venv")
    try:
        ctypes.CDLL("libgomp.so.1")  # pinocchio's wheel uses the system's OpenMP
    except OSError:
        missing.append("libgomp1")
    if missing:
        sudo = "" if os.geteuid() == 0 else "sudo "
        raise SetupError(
            f"{' and '.join(missing)} must be installed first (by these names on Debian and Ubuntu):\n"
            f"    {sudo}apt update && {sudo}apt install -y {' '.join(missing)}\nThen run make again."
        )


def digest(*paths: str | Path) -> str:
    """One hash over the contents of files, given relative to ROOT."""
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256((ROOT / path).read_bytes()).digest())
    return total.hexdigest()


def wanted_state() -> State:
    """What .venv is to be made from. Its place counts: the commands in a virtual environment hold absolute paths."""
    return {
        "place": str(VENV),
        "python": f"{os.path.realpath(sys.executable)} {platform.python_version()}",
        "requirements": digest(REQUIREMENTS),
        "package": digest(*PACKAGE),
    }


def read_stamp() -> State:
    """What .venv was made from as far as it got; empty when there is none."""
    try:
        state = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and PYTHON.exists() else {}


def write_stamp(state: State) -> None:
    """Record what is done, in one step: an interruption must not leave half a stamp."""
    new = STAMP.with_suffix(".new")
    new.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    new.replace(STAMP)


def environment() -> dict[str, str]:
    """The caller's environment without what is FOREIGN."""
    clean = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    return clean | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1"}


class Progress:
    """What pip is at: one line that changes on a terminal, a line now and then in a log."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.count = 0
        self.next_line = 0.0

    def feed(self, line: str) -> None:
        """Take one line of pip's output."""
        if found := re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line):
            self.count = min(self.count + 1, self.total)
            self.show(f"looking up {found[1]}")
        elif found := re.match(r"\s*(Downloading|Using cached) ([\w.]+)-\S* ?(\(.*\))?", line):
            self.show(f"{found[1].lower()} {found[2]} {found[3] or ''}")
        elif line.startswith("Installing collected packages"):
            self.show("unpacking; this takes a while", always=True)

    def show(self, text: str, always: bool = False) -> None:
        """Show where we are; in a log at most every 5 seconds."""
        text = f"  [{self.count:3d}/{self.total}] {text}"
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width), end="", flush=True)
        elif always or time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + 5.0
            print(text, flush=True)

    def close(self) -> None:
        """Wipe the line that changes."""
        if sys.stdout.isatty():
            print("\r" + " " * (shutil.get_terminal_size().columns - 1), end="\r", flush=True)


class Echo:
    """What a command says, line by line."""

    def feed(self, line: str) -> None:
        """Show one line of the command's output."""
        print(f"  {line.rstrip()}", flush=True)

    def close(self) -> None:
        """Leave the lines where they are."""


def run(*arguments: str | Path, progress: Progress | Echo | None = None) -> None:
    """Run a command, its output going to LOG; raise SetupError with the end of it, and a remedy where one is known."""
    command = [str(argument) for argument in arguments]
    lines = []
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n$ {' '.join(command)}\n")
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                log.write(line)
                lines.append(line)
                if progress:
                    progress.feed(line)
    if progress:
        progress.close()
    if process.returncode == 0:
        return
    output = "".join(lines)
    end = "".join(lines[-15:])
    message = f"{' '.join(command[:4])} ... stopped with code {process.returncode}:\n\n{end}\nAll of it is in {LOG}"
    if "No space left on device" in output:
        message += f"\nThe disk is full: {ROOT} needs 2 GB, and TMPDIR some."
    elif OFFLINE.search(output):
        message += (
            "\nThe package index was not reached. Check the network; behind a proxy, set HTTPS_PROXY; with an index of"
            "\nyour own, set PIP_INDEX_URL. Then run make again."
        )
    raise SetupError(message)


def pinned(*names: str) -> list[str]:
    """The pins ``name==version`` of the given packages."""
    lines = (ROOT / REQUIREMENTS).read_text(encoding="utf-8").splitlines()
    return [line.split(";")[0].strip() for line in lines if line.startswith(tuple(f"{name}==" for name in names))]


def link_ros_files() -> None:
    """Put into .venv what ROS tools look for in a prefix. An editable install leaves it out; links keep it current."""
    links = {VENV / "share" / "ament_index" / "resource_index" / "packages" / NAME: ROOT / "resource" / NAME}
    for name in ("package.xml", "launch", "config"):
        links[VENV / "share" / NAME / name] = ROOT / name
    for node in (VENV / "bin").glob("*_node"):
        links[VENV / "lib" / NAME / node.name] = node
    for link, target in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(target, link.parent))


def bring_up_to_date(state: State, done: State) -> None:
    """Bring .venv from `done` to `state`; of another Python or from another place, it is made anew."""
    if any(done.get(key) != state[key] for key in ("place", "python")):
        print(f"Making .venv with Python {platform.python_version()}", flush=True)
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir()
        run(sys.executable, "-m", "venv", VENV)
        done = {"place": state["place"], "python": state["python"]}
        write_stamp(done)
    pip = (PYTHON, "-m", "pip", "install", "--retries", "2")
    if done.get("requirements") != state["requirements"]:
        print("Installing the pinned packages (some 450 MB the first time)", flush=True)
        # The build tools first: with them in place, nothing unpinned is fetched to build a package from source.
        run(*pip, *pinned("pip", "setuptools", "wheel"))
        names = re.findall(r"^([\w.-]+)==", (ROOT / REQUIREMENTS).read_text(encoding="utf-8"), re.MULTILINE)
        run(*pip, "--no-build-isolation", "-r", REQUIREMENTS, progress=Progress(len(set(names))))
        done["requirements"] = state["requirements"]
        write_stamp(done)
    print("Installing bipedsim, editable", flush=True)
    run(*pip, "--no-build-isolation", "--no-deps", "--editable", ".")
    link_ros_files()
    print("Compiling the kernels of the contact models, for some minutes the first time", flush=True)
    run(VENV / "bin" / "bipedsim", "warmup", progress=Echo())
    write_stamp(state)


def main() -> int:
    """Entry point; returns the exit code."""
    started = time.monotonic()
    try:
        check_machine()
        state, done = wanted_state(), read_stamp()
        if state == done:
            return 0
        bring_up_to_date(state, done)
    except SetupError as problem:
        print(f"\nmake setup: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmake setup: interrupted; run make again to go on", file=sys.stderr)
        return 130
    print(f"Ready after {time.monotonic() - started:.0f} s: .venv/bin/bipedsim", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
