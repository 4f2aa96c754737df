"""Make .venv with the pinned packages and bipedsim itself; called by `make setup`, quick when nothing has changed.

Arguments are extras of setup.py that are wanted beside those that the simulator needs: `test`, `lint`.
Runs on the system's Python before anything is installed, hence with the standard library only.
"""

from __future__ import annotations

import ast
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
from collections.abc import Iterable
from pathlib import Path

NAME = "bipedsim"
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "setup.json"
LOG = VENV / "setup.log"
PINS = Path("requirements", "requirements.txt")
EXTRAS = ("robots", "ros", "view")  # of setup.py, always
WHEELS = ("--only-binary", ":all:", "--no-binary", "empy")  # no compiler is needed; empy is pure Python, a source alone
PIP = (PYTHON, "-m", "pip", "install", "--retries", "2")
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
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_SYSTEM_PYTHON",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
}

IMPORTED = (
    "bipedsim_ros.nodes.sim_node",
    "bipedsim_ros.nodes.controller_node",
    "bipedsim_ros.nodes.recorder_node",
    "bipedsim_ros.nodes.commander_node",
    "bipedsim_ros.bringup.runner",
    "bipedsim.analysis.run_summary",
    "bipedsim.view.plots",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
)

OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|name resolution|ConnectTimeout|ProxyError|Network is unreachable"
    r"|Failed to establish a new connection|Connection refused|No route to host"
)

# What uv, which does not read pip's settings, calls those that say where packages come from; "," where it separates by
# commas what pip separates by spaces.
OF_UV = {
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
    "constraint": ("UV_CONSTRAINT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "keyring-provider": ("UV_KEYRING_PROVIDER", " "),
    "no-index": ("UV_NO_INDEX", " "),
    "proxy": ("ALL_PROXY", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
}
OF_PIP_ALONE = {  # of its screen, its cache and what we decide ourselves: no loss where uv does not know them
    "break-system-packages",
    "cache-dir",
    "disable-pip-version-check",
    "no-cache-dir",
    "no-color",
    "no-compile",
    "no-input",
    "no-warn-script-location",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "retries",
    "root-user-action",
    "user",
    "verbose",
}

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


def wanted_state(extras: Iterable[str]) -> State:
    """What .venv is to be made from, with these extras.

    Its place counts: the commands in a virtual environment hold absolute paths.
    """
    return {
        "place": str(VENV),
        "python": f"{os.path.realpath(sys.executable)} {platform.python_version()}",
        "pins": digest(PINS),
        "package": digest(*PACKAGE),
        "extras": " ".join(sorted({*EXTRAS, *extras})),
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
    """What pip or uv is at: one line that changes on a terminal, a line now and then in a log."""

    def __init__(self) -> None:
        self.next_line = 0.0

    def feed(self, line: str) -> None:
        """Take one line of their output."""
        if found := re.match(r"\s*(Collecting|Downloading|Using cached|Downloaded|Building) ([\w.]+)", line):
            self.show(f"{found[1].lower()} {found[2]}")
        elif line.startswith("Installing collected packages"):
            self.show("unpacking; this takes a while", always=True)

    def show(self, text: str, always: bool = False) -> None:
        """Show where we are; in a log at most every 5 seconds."""
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            print("\r" + f"  {text}"[:width].ljust(width), end="", flush=True)
        elif always or time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + 5.0
            print(f"  {text}", flush=True)

    def close(self) -> None:
        """Wipe the line that changes."""
        if sys.stdout.isatty():
            print("\r" + " " * (shutil.get_terminal_size().columns - 1), end="\r", flush=True)


def run(*arguments: str | Path, progress: Progress | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command and return its output, which goes to LOG too.

    Raises SetupError with the end of the output, and a remedy where one is known.
    """
    command = [str(argument) for argument in arguments]
    lines = []
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n$ {' '.join(command)}\n")
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment() if env is None else env,
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
    output = "".join(lines)
    if process.returncode == 0:
        return output
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
    lines = (ROOT / PINS).read_text(encoding="utf-8").splitlines()
    return [line.split(";")[0].strip() for line in lines if line.startswith(tuple(f"{name}==" for name in names))]


def settings_of_uv(listing: str, env: dict[str, str]) -> dict[str, str] | None:
    """Return what uv needs in its environment to install from where pip would.

    `listing` is what `pip config list` says, `env` the environment, whose own settings of uv come first. None: there
    are settings of pip that uv would not follow.
    """
    found: dict[str, str] = {}
    # For pip, the environment counts more than the section of a command, and that more than the one for all.
    for section in ("global", "install", ":env:"):
        for key, value in re.findall(rf"^{re.escape(section)}\.([\w-]+)=(.+)$", listing, re.MULTILINE):
            if key in OF_UV:
                name, separator = OF_UV[key]
                found[name] = separator.join(str(ast.literal_eval(value)).split())
            elif key not in OF_PIP_ALONE:
                return None
    # For pip all indices are alike, and the highest version wins.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **found, **env}


def install_with_uv(*arguments: str | Path) -> bool:
    """Install with uv, which fetches in parallel: a fifth of pip's time. False where it does not work here."""
    try:
        settings = settings_of_uv(run(PYTHON, "-m", "pip", "config", "list"), environment())
        if settings is None:
            print("  pip has settings that uv would not follow: pip installs, and takes longer", flush=True)
            return False
        run(*PIP, "--only-binary", ":all:", *pinned("uv"))
        uv = (VENV / "bin" / "uv", "pip", "install", "--python", PYTHON)
        run(*uv, *WHEELS, *pinned("pip", "setuptools", "wheel"), env=settings)
        run(*uv, *WHEELS, "--no-build-isolation", *arguments, progress=Progress(), env=settings)
    except SetupError as problem:
        if "disk is full" in str(problem):
            raise
        print("  uv does not work here (see .venv/setup.log): pip goes on, and takes longer", flush=True)
        return False
    return True


def install(*arguments: str | Path) -> None:
    """Install with uv or pip; with the build tools in place first, nothing unpinned is fetched to build a package."""
    if not install_with_uv(*arguments):
        run(*PIP, *pinned("pip", "setuptools", "wheel"))
        run(*PIP, *WHEELS, "--no-build-isolation", *arguments, progress=Progress())


def link_ros_files() -> None:
    """Put into .venv what ROS tools look for in a prefix. An editable install leaves it out; links keep it current."""
    links = {VENV / "share" / "ament_index" / "resource_index" / "packages" / NAME: ROOT / "resource" / NAME}
    share = VENV / "share" / NAME
    links[share / "package.xml"] = ROOT / "package.xml"
    # Files, not folders: `ros2 launch` does not look into folders that are links.
    for name in ("launch", "config"):
        remove(share / name)
        links |= {share / name / file.name: file for file in (ROOT / name).iterdir() if file.is_file()}
    for node in (VENV / "bin").glob("*_node"):
        links[VENV / "lib" / NAME / node.name] = node
    for link, target in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        remove(link)
        link.symlink_to(os.path.relpath(target, link.parent))


def compile_imports() -> None:
    """Have Python keep the bytecode of what a bring-up imports.

    Its nodes start together and would each compile the same; and all would again at every start, in an environment
    with PYTHONDONTWRITEBYTECODE, which images of containers like to set.
    """
    try:
        run(PYTHON, "-c", f"import {', '.join(IMPORTED)}")
    except SetupError:
        print("  the nodes cannot be imported (see .venv/setup.log)", flush=True)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, where there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def bring_up_to_date(state: State, done: State) -> None:
    """Bring .venv from `done` to `state`; of another Python or from another place, it is made anew."""
    if any(done.get(key) != state[key] for key in ("place", "python")):
        print(f"Making .venv with Python {platform.python_version()}", flush=True)
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir()
        run(sys.executable, "-m", "venv", VENV)
        write_stamp({"place": state["place"], "python": state["python"]})
    extras = ",".join(state["extras"].split())
    print(f"Installing bipedsim[{extras}] and the pinned packages that it needs", flush=True)
    install("--constraint", PINS, "--editable", f".[{extras}]")
    link_ros_files()
    compile_imports()
    write_stamp(state)


def main() -> int:
    """Entry point; returns the exit code."""
    started = time.monotonic()
    try:
        check_machine()
        done = read_stamp()
        # What was once wanted stays up to date, so that `make test` and `make demo` do not take turns.
        state = wanted_state({*sys.argv[1:], *done.get("extras", "").split()})
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
