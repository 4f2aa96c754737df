"""Carry out a Dockerfile in the tree of a root file system, where no engine can pull its base image.

    mmdebstrap --variant=minbase trixie /tmp/root
    python tools/try_dockerfile.py docker/debian.Dockerfile /tmp/root run --duration 1

It needs root. It knows the instructions that the files in docker/ use, and refuses others.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
FROM_HOST = ("etc/resolv.conf", CERTIFICATES)
"""Files without which the tree reaches no package index."""


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile and their arguments, without comments, each on one line."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.findall(r"^(\w+) +(.+)$", re.sub(r"\\\n\s*", "", text), flags=re.MULTILINE)


def copy_checkout(target: Path) -> None:
    """Copy the files that git knows: .dockerignore leaves out nothing else that matters."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)


def carry_out(path: Path, tree: Path, command: list[str]) -> int:
    """Carry out a Dockerfile in a tree, then its entry point with ``command``; return the exit code of the latter."""
    folder = "/"
    entry: list[str] = []
    env = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "PIP_CERT": f"/{CERTIFICATES}"}

    chroot = shutil.which("chroot") or "/usr/sbin/chroot"

    def inside(*words: str) -> int:
        shell = 'cd "$0" && exec "$@"'
        return subprocess.run([chroot, tree, "/bin/sh", "-c", shell, folder, *words], env=env, check=False).returncode

    for name, argument in instructions(path):
        print(f"{name} {argument}", flush=True)
        for file in FROM_HOST:  # Before each one: the first installs certificates of its own.
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(f"/{file}", tree / file)
        if name == "RUN" and (code := inside("/bin/sh", "-c", argument)):
            sys.exit(f"{path}: RUN {argument}: exit code {code}")
        elif name == "COPY":
            copy_checkout(tree / folder.lstrip("/") / argument.split()[1].lstrip("/"))
        elif name == "ENV":
            env.update({key: value for key, _, value in (pair.partition("=") for pair in argument.split())})
        elif name == "WORKDIR":
            folder = argument
            (tree / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif name == "ENTRYPOINT":
            entry = json.loads(argument)
        elif name not in ("FROM", "RUN", "CMD"):
            sys.exit(f"{path}: {name} is not supported by {Path(__file__).name}")
    return inside(*entry, *command)


def main() -> int:
    """Mount what a container has, carry out the file, and unmount it again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("tree", type=Path, help="root file system of the base image; it is changed")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="arguments of the entry point")
    args = parser.parse_args()
    mounts = [args.tree / name for name in ("proc", "dev")]
    for mount in mounts:
        subprocess.run(["mount", "--rbind", f"/{mount.name}", mount], check=True)
    try:
        return carry_out(args.dockerfile, args.tree, args.command)
    finally:
        for mount in mounts:
            subprocess.run(["umount", "--lazy", "--recursive", mount], check=True)


if __name__ == "__main__":
    sys.exit(main())
