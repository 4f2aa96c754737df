"""Create .venv with the pinned packages and bipedsim; called by `make setup`, and fast if nothing has changed.

The arguments are extras of setup.py in addition to those that the simulator needs: `test`, `lint`.
The script runs on the system's Python before any installation, so it uses only the standard library.
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
EXTRAS = ("robots", "ros", "view")  # Extras of setup.py that are always installed.
WHEELS = ("--only-binary", ":all:", "--no-binary", "empy")  # No compiler is needed: empy, a source, is pure Python.
PIP = (PYTHON, "-m", "pip", "install", "--retries", "2")
PACKAGE = ("setup.py", "setup.cfg", "package.xml", "bipedsim/__init__.py", "tools/setup_venv.py")

# Settings of the caller that would change the destination of an installation, or use packages of another installation.
# The ROS wheels re-execute Python once per process tree to find their libraries. A guard variable inherited from
# another environment would suppress this, and the library path would refer to that environment.
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

# Names in uv of pip's settings for package sources, because uv does not read pip's settings. The second value is the
# separator: uv uses commas in some settings in which pip uses spaces.
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
OF_PIP_ALONE = {  # Settings of output and cache, and settings that this script overrides. uv can ignore them.
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
    """The set-up cannot continue; the message contains the reason and the remedy."""


def check_machine() -> None:
    """Raise SetupError if the pinned packages do not support this machine or this Python."""
    if platform.system() != "Linux" or sys.maxsize < 2**32:
        raise SetupError(f"this set-up is for 64-bit Linux, not for {platform.platform()}")
    missing = []
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        is_default = os.path.realpath("/usr/bin/python3") == os.path.realpath(sys.executable)
        version = "3" if is_default else f"3.{sys.version_info.minor}"
        missing.append(f"python{version}-venv")
    try:
        ctypes.CDLL("libgomp.so.1")  # pinocchio's wheel uses the OpenMP library of the system.
    except OSError:
        missing.append("libgomp1")
    if missing:
        sudo = "" if os.geteuid() == 0 else "sudo "
        raise SetupError(
            f"{' and '.join(missing)} must be installed first (by these names on Debian and Ubuntu):\n"
            f"    {sudo}apt update && {sudo}apt install -y {' '.join(missing)}\nThen run make again."
        )


def digest(*paths: str | Path) -> str:
    """Return one hash of the contents of files with paths relative to ROOT."""
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256((ROOT / path).read_bytes()).digest())
    return total.hexdigest()


def wanted_state(extras: Iterable[str]) -> State:
    """Return the state that .venv must have with these extras.

    The state includes the location, because commands in a virtual environment contain absolute paths.
    """
    return {
        "place": str(VENV),
        "python": f"{os.path.realpath(sys.executable)} {platform.python_version()}",
        "pins": digest(PINS),
        "package": digest(*PACKAGE),
        "extras": " ".join(sorted({*EXTRAS, *extras})),
    }


def read_stamp() -> State:
    """Return the state of .venv according to its last set-up; empty without .venv."""
    try:
        state = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and PYTHON.exists() else {}


def write_stamp(state: State) -> None:
    """Store the state atomically, so that an interruption cannot leave an incomplete file."""
    new = STAMP.with_suffix(".new")
    new.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    new.replace(STAMP)


def environment() -> dict[str, str]:
    """Return the caller's environment without the settings in FOREIGN."""
    clean = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    return clean | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1"}


class Progress:
    """Show the activity of pip or uv: one updated line on a terminal, or an occasional line in a log."""

    def __init__(self) -> None:
        self.next_line = 0.0

    def feed(self, line: str) -> None:
        """Process one line of output."""
        if activity := re.match(r"\s*(Collecting|Downloading|Using cached|Downloaded|Building) ([\w.]+)", line):
            self.show(f"{activity[1].lower()} {activity[2]}")
        elif line.startswith("Installing collected packages"):
            self.show("unpacking; this takes a while", always=True)

    def show(self, text: str, always: bool = False) -> None:
        """Show the activity; in a log at most every 5 seconds."""
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            print("\r" + f"  {text}"[:width].ljust(width), end="", flush=True)
        elif always or time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + 5.0
            print(f"  {text}", flush=True)

    def close(self) -> None:
        """Clear the updated line."""
        if sys.stdout.isatty():
            print("\r" + " " * (shutil.get_terminal_size().columns - 1), end="\r", flush=True)


def run(*arguments: str | Path, progress: Progress | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command, and return its output, which is also written to LOG.

    Raises SetupError with the end of the output, and with a remedy if one is known.
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
    """Return the pins ``name==version`` of the given packages."""
    lines = (ROOT / PINS).read_text(encoding="utf-8").splitlines()
    return [line.split(";")[0].strip() for line in lines if line.startswith(tuple(f"{name}==" for name in names))]


def settings_of_uv(listing: str, env: dict[str, str]) -> dict[str, str] | None:
    """Return the environment in which uv installs from the same sources as pip.

    `listing` is the output of `pip config list`. `env` is the environment, whose own settings of uv take precedence.
    Return None if pip has settings that uv would ignore.
    """
    uv_settings: dict[str, str] = {}
    # pip's precedence is: the environment, then the section of a command, then the global section.
    for section in ("global", "install", ":env:"):
        for key, value in re.findall(rf"^{re.escape(section)}\.([\w-]+)=(.+)$", listing, re.MULTILINE):
            if key in OF_UV:
                name, separator = OF_UV[key]
                uv_settings[name] = separator.join(str(ast.literal_eval(value)).split())
            elif key not in OF_PIP_ALONE:
                return None
    # pip treats all indices equally and uses the highest version.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **uv_settings, **env}


def install_with_uv(*arguments: str | Path) -> bool:
    """Install with uv, which downloads in parallel and takes a fifth of pip's time. Return False if it fails."""
    try:
        settings = settings_of_uv(run(PYTHON, "-m", "pip", "config", "list"), environment())
        if settings is None:
            print("  pip has settings that uv would not follow: pip installs, and takes longer", flush=True)
            return False
        run(*PIP, "--only-binary", ":all:", *pinned("uv"))
        uv = (VENV / "bin" / "uv", "pip", "install", "--python", PYTHON)
        run(*uv, *WHEELS, *pinned("pip", "setuptools", "wheel"), env=settings)
        run(*uv, *WHEELS, "--no-build-isolation", *arguments, progress=Progress(), env=settings)
    except SetupError as error:
        if "disk is full" in str(error):
            raise
        print("  uv does not work here (see .venv/setup.log): pip goes on, and takes longer", flush=True)
        return False
    return True


def install(*arguments: str | Path) -> None:
    """Install with uv or pip. The build tools come first, so that no unpinned package is downloaded for a build."""
    if not install_with_uv(*arguments):
        run(*PIP, *pinned("pip", "setuptools", "wheel"))
        run(*PIP, *WHEELS, "--no-build-isolation", *arguments, progress=Progress())


def link_ros_files() -> None:
    """Link the files that ROS tools expect in a prefix into .venv, because an editable install omits them."""
    links = {VENV / "share" / "ament_index" / "resource_index" / "packages" / NAME: ROOT / "resource" / NAME}
    share = VENV / "share" / NAME
    links[share / "package.xml"] = ROOT / "package.xml"
    # Files are linked instead of folders, because `ros2 launch` does not search in linked folders.
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
    """Compile the bytecode of the modules that a launch imports.

    The nodes start at the same time, so each would compile the same modules. With PYTHONDONTWRITEBYTECODE, which is
    common in container images, this would happen at every start.
    """
    try:
        run(PYTHON, "-c", f"import {', '.join(IMPORTED)}")
    except SetupError:
        print("  the nodes cannot be imported (see .venv/setup.log)", flush=True)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def bring_up_to_date(state: State, installed: State) -> None:
    """Update .venv from the state `installed` to `state`. Recreate it for another Python or another location."""
    if any(installed.get(key) != state[key] for key in ("place", "python")):
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
    """Run the set-up and return the exit code."""
    started = time.monotonic()
    try:
        check_machine()
        installed = read_stamp()
        # Extras of earlier set-ups remain, so that `make test` and `make demo` do not alternate between two states.
        state = wanted_state({*sys.argv[1:], *installed.get("extras", "").split()})
        if state == installed:
            return 0
        bring_up_to_date(state, installed)
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
