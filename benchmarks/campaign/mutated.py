"""Wrong input files and command lines of every kind, and the reaction of `bipedsim`."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from attempt import Outcome, attempt

from bipedsim.cli.commands import COMMANDS
from bipedsim.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from bipedsim.ground.names import GROUNDS
from bipedsim.model import load_robot
from bipedsim.recording import COLUMNS, load_recording
from bipedsim.runs.names import SCENARIO_FILES

Rng = np.random.Generator
ROBOT = "biped14"
SHORT = ["--duration", "0.02"]

NASTY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    -0.0,
    1e308,
    -1e308,
    1e-308,
    5e-324,
    float("nan"),
    float("inf"),
    -float("inf"),
    10**30,
    10**400,
    -(10**400),
    2**63,
    2**31,
    0.1,
    "",
    " ",
    "x",
    "nan",
    "1e5",
    "-",
    "/",
    "..",
    "/dev/zero",
    "no/such.yaml",
    "ä€😀",
    "\u202eabc",
    "a" * 100_000,
    "%s %n {0} {x}",
    "$(id)",
    "'",
    '"',
    "\\",
    "\n",
    "\t",
    "*",
    "(",
    "[",
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    {"a": {"b": {"c": 1}}},
    [1, 2, 3],
    ["a", "b"],
    [None],
    [float("nan")] * 3,
    [0.0, 0.0, 0.0],
    [1e308] * 3,
    [1e200] * 6,
    [0.0] * 10_000,
    {"x": [1, {"y": None}]},
)
"""Values that replace others."""

TEXTS = (
    "2020-13-45",
    "2020-01-01",
    "12:61:61",
    "0x",
    "0b2",
    "1_0",
    "0o9",
    "!!binary x",
    "!!binary AAAA",
    "!!float x",
    "!!int x",
    "!!python/object/apply:os.system [id]",
    "!!set {a, b}",
    "!!timestamp x",
    "!!null x",
    "!x y",
    "*undefined",
    "&a [*a]",
    "&a {b: *a}",
    "{<<: *x}",
    "{<<: 3}",
    "{<<: [1]}",
    "? [a]",
    "{[a]: b}",
    "{{a: b}: c}",
    "{null: 1}",
    "{1: 1}",
    "{a: 1, a: 2}",
    ".inf",
    "-.inf",
    ".nan",
    "1e400",
    "9" * 5000,
    "0x" + "f" * 5000,
    "[" * 3000,
    "{a: " * 2000,
    "- - - -",
    "|\n x",
    ">",
    "@",
    "`",
    "%YAML 9.9",
    "'",
    '"',
    "\\",
    "\x00",
    "\x07",
    "\x85",
    "\ufeff",
    "\ud800",
    "true",
    "no",
    "~",
    "=",
    "<<",
    "190:20:30",
)
"""Pieces of YAML that replace values."""

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
XML_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "xxxxxxxxxx">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + ']><robot name="&j;"/>'
)


class _Whole(yaml.SafeDumper):
    """Repeats arguments that occur twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dumped(tree: Any) -> str:
    return str(yaml.dump(tree, Dumper=_Whole, sort_keys=False, allow_unicode=True, width=10**6))


def paths(tree: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the values of a tree are."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*so_far, key)
        yield from paths(value, (*so_far, key))


def _chosen(tree: Any, rng: Rng) -> tuple[Any, Any]:
    """Return a container in the tree, and the key of a value in it; those near the root as often as all others."""
    found = list(paths(tree))
    if rng.random() < 0.5:
        found = [path for path in found if len(path) == 1]
    path = found[int(rng.integers(len(found)))]
    for key in path[:-1]:
        tree = tree[key]
    return tree, path[-1]


def _pick(of: Any, rng: Rng) -> Any:
    return of[int(rng.integers(len(of)))]


def value_replaced(raw: str, rng: Rng) -> str:
    tree = yaml.safe_load(raw)
    place, key = _chosen(tree, rng)
    place[key] = _pick(NASTY, rng)
    return dumped(tree)


def text_replaced(raw: str, rng: Rng) -> str:
    tree = yaml.safe_load(raw)
    place, key = _chosen(tree, rng)
    place[key] = "PLACE"
    return dumped(tree).replace("PLACE", _pick(TEXTS, rng), 1)


def key_deleted(raw: str, rng: Rng) -> str:
    tree = yaml.safe_load(raw)
    place, key = _chosen(tree, rng)
    del place[key]
    return dumped(tree)


def key_renamed(raw: str, rng: Rng) -> str:
    tree = yaml.safe_load(raw)
    place, key = _chosen(tree, rng)
    if isinstance(place, dict):
        place[_pick([f"{key}s", str(key)[:-1], str(key).upper(), "", 3, None, True, 1.5, "ä", (1, 2)], rng)] = (
            place.pop(key)
        )
    return dumped(tree)


def key_twice(raw: str, rng: Rng) -> str:
    lines = raw.splitlines()
    keyed = [line for line in lines if re.match(r"\w+:", line)]
    return "\n".join([*lines, _pick(keyed, rng)])


def wrapped(raw: str, rng: Rng) -> str:
    tree = yaml.safe_load(raw)
    place, key = _chosen(tree, rng)
    value = place[key]
    place[key] = _pick([[value], {"x": value}, [value, value], {str(key): value}, [[value]], [value] * 500], rng)
    return dumped(tree)


def exchanged(raw: str, rng: Rng) -> str:
    tree = yaml.safe_load(raw)
    (one, a), (other, b) = _chosen(tree, rng), _chosen(tree, rng)
    one[a], other[b] = copy.deepcopy(other[b]), copy.deepcopy(one[a])
    return dumped(tree)


def scaled(raw: str, rng: Rng) -> str:
    """Multiply a number that is in the text."""
    numbers = list(re.finditer(r"(?<![\w.])-?\d+\.?\d*(?![\w.])", raw))
    if not numbers:
        return raw
    found = _pick(numbers, rng)
    factor = _pick([-1.0, 0.0, 1e-12, 1e-3, 10.0, 1e3, 1e6, 1e12, 1e300], rng)
    return f"{raw[: found.start()]}{float(found[0]) * factor!r}{raw[found.end() :]}"


def cut(raw: str, rng: Rng) -> bytes:
    data = raw.encode()
    return data[: int(rng.integers(len(data)))]


def flipped(raw: str, rng: Rng) -> bytes:
    data = bytearray(raw.encode())
    for at in rng.integers(len(data), size=int(rng.integers(1, 6))):
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def spliced(raw: str, rng: Rng) -> bytes:
    data = raw.encode()
    at = int(rng.integers(len(data)))
    return (
        data[:at]
        + _pick([b"\0", b"\t", b"\xff\xfe", rng.bytes(20), b"\r", b": ", b"- ", b"#", b"&a ", b"*a "], rng)
        + data[at:]
    )


def replaced(raw: str, rng: Rng) -> bytes:
    """Return random content that is not such a file."""
    deep = "a: " + "[" * 20_000
    return _pick(
        [
            b"",
            b"\n",
            b"---\n---\n",
            b"[]",
            b"3",
            b"null",
            b"a",
            rng.bytes(2000),
            bytes(1000),
            LAUGHS.encode(),
            deep.encode(),
            raw.encode("utf-16"),
            raw.encode("utf-32"),
            b"\xef\xbb\xbf" + raw.encode(),
            XML_LAUGHS.encode(),
            b"a: &a\n  b: *a\n",
            (raw + "\n" + LAUGHS).encode(),
            b"a: " + b"x" * 10_000_000,
            raw.encode() * 2,
            b"{" * 5000,
            b"- " * 5000,
        ],
        rng,
    )


def no_file(raw: str, rng: Rng) -> str:
    """Return the path of something that is no file."""
    return str(
        _pick(
            [
                "folder",
                "no_such.yaml",
                "no/such.yaml",
                "/dev/zero",
                "/dev/null",
                "pipe.yaml",
                "circle.yaml",
                "",
                ".",
                "a" * 300 + ".yaml",
                "x\0.yaml",
                "~/x.yaml",
                "file://x.yaml",
                "dev.yaml",
                "folder.yaml",
                "/proc/self/mem",
            ],
            rng,
        )
    )


YAML = (
    value_replaced,
    text_replaced,
    key_deleted,
    key_renamed,
    key_twice,
    wrapped,
    exchanged,
    scaled,
    cut,
    flipped,
    spliced,
    replaced,
)


def attribute_replaced(raw: str, rng: Rng) -> str:
    """Give an attribute of a URDF another value."""
    found = _pick(list(re.finditer(r'="([^"]*)"', raw)), rng)
    nasty = [
        "",
        "nan",
        "inf",
        "-1",
        "0",
        "1e308",
        "-1e308",
        "1e-320",
        "x",
        "1 2",
        "1 2 3 4",
        "ä",
        "&#0;",
        "&x;",
        "<",
        "1,5",
        "9" * 500,
        "0x10",
        "a" * 10_000,
        " ",
        "1e400",
        "--1",
        "l_hip",
        "base_link",
        "l_sole",
        "world",
        "universe",
        "root_joint",
    ]
    return f'{raw[: found.start()]}="{_pick(nasty, rng)}"{raw[found.end() :]}'


def attribute_deleted(raw: str, rng: Rng) -> str:
    found = _pick(list(re.finditer(r'\s\w+="[^"]*"', raw)), rng)
    return raw[: found.start()] + raw[found.end() :]


def element_deleted(raw: str, rng: Rng) -> str:
    found = _pick(list(re.finditer(r"<(\w+)\b[^<>]*/>|<(link|joint|inertial)\b.*?</\2>", raw, re.S)), rng)
    return raw[: found.start()] + raw[found.end() :]


def element_twice(raw: str, rng: Rng) -> str:
    found = _pick(list(re.finditer(r"<(\w+)\b[^<>]*/>|<(link|joint|inertial)\b.*?</\2>", raw, re.S)), rng)
    return raw[: found.end()] + found[0] + raw[found.end() :]


def element_renamed(raw: str, rng: Rng) -> str:
    found = _pick(list(re.finditer(r"<(\w+)", raw)), rng)
    other = _pick(["x", "link", "joint", "robot", "origin", found[1].upper()], rng)
    return f"{raw[: found.start()]}<{other}{raw[found.end() :]}"


def parent_exchanged(raw: str, rng: Rng) -> str:
    """Hang a joint on another link: circles, two parents, no root."""
    links = re.findall(r'<link name="([^"]*)"', raw)
    found = _pick(list(re.finditer(r'<(parent|child) link="[^"]*"', raw)), rng)
    return f'{raw[: found.start()]}<{found[1]} link="{_pick(links, rng)}"{raw[found.end() :]}'


URDF = (
    attribute_replaced,
    attribute_deleted,
    element_deleted,
    element_twice,
    element_renamed,
    parent_exchanged,
    scaled,
    cut,
    flipped,
    spliced,
    replaced,
)

HARDWARE = """\
preset: realistic
mass_scale: 1.05
com_shift: [0.01, 0.0, 0.0]
encoder_resolution: 0.0001
velocity_noise: 0.01
gyro_bias: [0.001, 0.0, 0.0]
measurement_delay: 0.002
command_delay: 0.003
coulomb_friction: {l_knee: 1.0, ".*ankle.*": 0.5}
corner_speed: 0.5
"""
FAULTS = """\
faults:
  - {part: imu, does: lost, at: 0.005, duration: 0.01}
  - {part: joints, does: offset, joint: l_knee, amount: 0.1, at: 0.002}
  - {part: ankles, does: scaled, foot: left, amount: 0.5, at: 0.001}
  - {part: commands, does: late, amount: 0.002, at: 0.001}
"""


@dataclass(frozen=True)
class Case:
    """One wrong input.

    Attributes:
        number: Number, also for the seed.
        what: Kind of the wrong file, or ``line``.
        mutation: Name of the mutation.
    """

    number: int
    what: str
    mutation: str


def _robot_files() -> tuple[Path, Path]:
    robot = load_robot(ROBOT)
    return robot.source, robot.source.with_name("robot.urdf")


def _scenario(rng: Rng) -> str:
    return Path(SCENARIO_FILES[_pick(sorted(SCENARIO_FILES), rng)]).read_text(encoding="utf-8")


def _ground(rng: Rng) -> str:
    return Path(GROUNDS[_pick(["patches", "slope", "stairs", "ice"], rng)]).read_text(encoding="utf-8")


# Kind of file: its text, and the command line that reads it as `file.yaml`.
_RUN = ["run", "--json", "--output", "run.npz", *SHORT]
FILES: dict[str, tuple[Callable[[Rng], str], list[str]]] = {
    "scenario": (_scenario, [*_RUN, "--scenario"]),
    "robot": (lambda rng: _robot_files()[0].read_text(encoding="utf-8"), [*_RUN, "--robot"]),
    "urdf": (lambda rng: _robot_files()[1].read_text(encoding="utf-8"), [*_RUN, "--robot"]),
    "ground": (_ground, [*_RUN, "--ground"]),
    "hardware": (lambda rng: HARDWARE, [*_RUN, "--hardware"]),
    "faults": (lambda rng: FAULTS, [*_RUN, "--scenario"]),
}
_SHARES = {"scenario": 12, "robot": 14, "urdf": 14, "ground": 8, "hardware": 8, "faults": 8, "line": 26, "path": 6}


def cases(count: int) -> Iterator[Case]:
    """Yield ``count`` cases, kinds of inputs and mutations in turn."""
    kinds = [what for k in range(max(_SHARES.values())) for what, n in _SHARES.items() if k < n]
    turn = dict.fromkeys(_SHARES, 0)
    for number in range(count):
        what = kinds[number % len(kinds)]
        mutations: tuple[Any, ...] = (
            URDF if what == "urdf" else LINES if what == "line" else (no_file,) if what == "path" else YAML
        )
        yield Case(number, what, mutations[turn[what] % len(mutations)].__name__)
        turn[what] += 1


def place(case: Case, folder: Path, seed: int, whole: Path) -> list[str]:
    """Write the wrong file of a case into ``folder``; return the command line that reads it.

    Args:
        case: The case.
        folder: Where.
        seed: Of the campaign.
        whole: Folder with recordings, for command lines.
    """
    rng = np.random.default_rng([seed, 1, case.number])
    if case.what == "line":
        for name in ("bag", "run.npz", "step.npz"):
            (folder / name).symlink_to(whole / "whole" / name)
        return list(_BY_NAME[case.mutation](rng))
    if case.what == "path":
        (folder / "folder").mkdir()
        (folder / "folder.yaml").mkdir()
        (folder / "circle.yaml").symlink_to("circle.yaml")
        (folder / "dev.yaml").symlink_to("/dev/zero")
        import os

        os.mkfifo(folder / "pipe.yaml")
        option = _pick(["--scenario", "--robot", "--ground", "--hardware"], rng)
        return [*_RUN, option, no_file("", rng)]
    source, line = FILES[case.what]
    changed = _BY_NAME[case.mutation](source(rng), rng)
    data = changed if isinstance(changed, bytes) else changed.encode("utf-8", "surrogatepass")
    name = "file.yaml"
    if case.what in ("robot", "urdf"):
        name = "robot.yaml"
        for file in _robot_files():
            shutil.copy(file, folder / file.name)
    (folder / ("robot.urdf" if case.what == "urdf" else name)).write_bytes(data)
    return [*line, f"./{name}"]


# Command lines. Long runs and launches get an argument that is certainly wrong.
_LONG = ("warmup", "bench", "compare", "control", "poincare", "push-map", "reproduce", "teleop", "up")
_GOOD: dict[str, list[str]] = {
    "run": ["run", *SHORT],
    "plot": ["plot", "run.npz", "-o", "p.png", "--panels", "cop"],
    "summary": ["summary", "bag"],
    "animate": ["animate", "run.npz", "-o", "a.png", "--postures", "2"],
    "export": ["export", "run.npz", "-o", "t.csv"],
    "replay": ["replay", "run.npz"],
    "robots": ["robots"],
    "scenarios": ["scenarios"],
    "check-robot": ["check-robot", ROBOT, "--bag", "bag"],
    "doctor": ["doctor"],
    "margins": ["margins", "run.npz", "--every", "100"],
    "modes": ["modes", "run.npz"],
}
_VALUES = (
    "",
    " ",
    "x",
    "0",
    "-1",
    "-0",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-308",
    "1e400",
    "9" * 5000,
    "1.5",
    "true",
    "null",
    "[]",
    "{}",
    "[[[",
    "a=b",
    "=",
    "a=",
    "=b",
    "kp=nan",
    "kp=-1",
    "gamma=inf",
    "/",
    ".",
    "..",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/proc/x/y",
    "no/such",
    "bag",
    "run.npz",
    "run.npz/x",
    "ä",
    "\udc80",
    "a" * 5000,
    "--",
    "-x",
    "%s",
    "{preset: realistic",
    "{preset: x}",
    "{preset: ideal, mass_scale: 0}",
    "{mass_scale: .nan}",
    "&a [*a]",
    "2020-13-45",
    LAUGHS,
    "[" * 3000,
    "os:system",
    "a.b:C",
    ":",
    "a:b:c",
    "json:loads",
    "1e5",
    "00",
    "0x10",
    "1_000",
    "٣",
    "1e-9",
    "1000000000",
    "100000",
    "0.3",
)
_OPTIONS = """
--robot --controller --scenario --duration --contact-model --ground --rate --physics-dt --hardware --seed --set --output
-o --plot --json --panels --view --speed --from --to --postures --every --bounce --pause --bag --state --remap --begin
--network --models --params-file --clock --record --jobs --scenarios
"""


def _usual(rng: Rng) -> list[str]:
    return list(_GOOD[_pick(sorted(_GOOD), rng)])


def _own_options(command: str) -> list[str]:
    """Return the options that a command has."""
    import argparse
    import importlib

    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[command].module).add_arguments(parser)
    return [action.option_strings[-1] for action in parser._actions if action.option_strings and action.dest != "help"]


def unknown_option(rng: Rng) -> list[str]:
    return [
        *_pick([_usual(rng), [_pick(sorted(COMMANDS), rng)]], rng),
        _pick(["--no-such", "-Z", "--robott=x", "---", "--json=3"], rng),
    ]


def option_of_another(rng: Rng) -> list[str]:
    return [*_usual(rng), _pick(_OPTIONS.split(), rng), _pick(_VALUES, rng)]


def value_wrong(rng: Rng) -> list[str]:
    line = _usual(rng)
    options = _own_options(line[0])
    return [*line, _pick(options, rng), _pick(_VALUES, rng)] if options else [*line, _pick(_VALUES, rng)]


def value_missing(rng: Rng) -> list[str]:
    command = _pick(sorted(COMMANDS), rng)
    valued = [option for option in _own_options(command) if option != "--json"]
    return [command, _pick(valued, rng) if valued else "--x"]


def positional_wrong(rng: Rng) -> list[str]:
    command = _pick(["plot", "summary", "animate", "export", "replay", "margins", "modes"], rng)
    return [command, _pick(_VALUES, rng)]


def option_twice(rng: Rng) -> list[str]:
    line = _usual(rng)
    options = [o for o in _own_options(line[0]) if o not in ("--duration",)] or ["--json"]
    option = _pick(options, rng)
    return [*line, option, _pick(_VALUES, rng), option, _pick(_VALUES, rng)]


def word_dropped(rng: Rng) -> list[str]:
    line = _usual(rng)
    if line[0] != "run":
        del line[int(rng.integers(len(line)))]
    return line


def command_misspelt(rng: Rng) -> list[str]:
    return [
        _pick(
            ["", "runn", "RUN", "plots", "ä", "-", "--", "check_robot", "help", "run run", "\udc80", "%s", "../run"],
            rng,
        )
    ]


def long_one_wrong(rng: Rng) -> list[str]:
    """Give a command that takes long, or starts nodes, something that cannot be right."""
    wrong = {
        "warmup": ["no_such_kernel"],
        "bench": _pick(
            [
                ["{engines: [x]}"],
                ["{robots: [x]}"],
                ["{dt: 0}"],
                ["{dt: .nan}"],
                ["{steps: -1}"],
                ["{blocks: x}"],
            ],
            rng,
        ),
        "compare": _pick(
            [
                ["--models", "x"],
                ["{reference: x}"],
                ["{run: {duration: .nan}}"],
                ["{contact_params: {a: b}}"],
                ["--robot", "x"],
            ],
            rng,
        ),
        "control": _pick(
            [["--controller", "x"], ["--rate", "0"], ["--params-file", "no.yaml"], ["--set", "a=1"], ["--robot", ""]],
            rng,
        ),
        "poincare": _pick(
            [
                ["{start: no.yaml}"],
                ["{slope: 2}"],
                ["{slope: .nan}"],
                ["{foot: x}"],
                ["{period: -1}"],
                ["--robot", "biped15"],
            ],
            rng,
        ),
        "push-map": _pick(
            [
                ["{at: -1}"],
                ["{directions: x}"],
                ["{push: {body: x}}"],
                ["{tolerance: .nan}"],
                ["--scenarios", "x"],
                ["{at: .nan}"],
            ],
            rng,
        ),
        "reproduce": _pick([["x"], ["moraud2008", "x"], [], ["moraud2008", "fig6", "-o", "/dev/null/x"]], rng),
        "teleop": _pick([["--params-file", "no.yaml"], ["--params-file", "/"], ["--topic", "a b"]], rng),
        "up": _pick(
            [
                ["--rate", "0"],
                ["--clock", "x"],
                ["--params-file", "no.yaml"],
                ["--params-file", "/"],
                ["--robot", "no.yaml"],
                ["--set", "a=b"],
                ["--hardware", "{x: 1}"],
                ["--record", "/dev/null/x"],
                ["--scenario", "x"],
                ["--physics-dt", "0.0007"],
                ["--duration", "-1"],
                ["--seed", "-1"],
                ["--set", "one_step.a=b"],
                ["--ground", "x"],
            ],
            rng,
        ),
    }
    command = _pick(_LONG, rng)
    return [command, *wrong[command]]


LINES = (
    unknown_option,
    option_of_another,
    value_wrong,
    value_missing,
    positional_wrong,
    option_twice,
    word_dropped,
    command_misspelt,
    long_one_wrong,
    value_wrong,
    option_twice,
    long_one_wrong,
    positional_wrong,
)
_BY_NAME: dict[str, Any] = {f.__name__: f for f in (*YAML, *URDF, *LINES)}


def judge(case: Case, line: list[str], done: Outcome, folder: Path) -> str:
    """Return the errors in a command's reaction to a wrong input; empty if there are none."""
    if done.wrong:
        return done.wrong
    if done.code == EXIT_USAGE:
        last = done.err.strip().splitlines()
        if not last:
            return "exit code 2 without a word"
        names = ("file.yaml", "robot.yaml", "robot.urdf")
        if case.what not in ("line", "path") and not any(n in done.err for n in names) and "diverged" not in done.err:
            return f"does not name the file: {last[-1][:200]}"
        return f"{len(done.err)} characters of message" if len(done.err) > 30_000 else ""
    if done.code == EXIT_OK and (folder / "run.npz").is_file() and not (folder / "run.npz").is_symlink():
        run = load_recording(folder / "run.npz")
        rows = ("joint_position", "joint_velocity", "joint_effort", "wrench", "base_pose")
        wild = [name for name in rows if name in COLUMNS and not np.isfinite(getattr(run, name)).all()]
        if wild:
            return f"accepted, and not finite: {', '.join(wild)}"
        if "--json" in line:
            try:
                json.loads(done.out)
            except ValueError as error:
                return f"accepted, and its JSON is none: {error}"
    if case.what == "line" and done.code in (EXIT_FAILED, 3, 4):
        return ""
    return "" if done.code == EXIT_OK else f"exit code {done.code}: {done.err.strip()[-200:]}"


def try_one(case: Case, folder: Path, seed: int, whole: Path) -> dict[str, Any]:
    """Give a wrong input to the command that reads it; return a row."""
    line = place(case, folder, seed, whole)
    done = attempt(line, folder, limited=line[:1] not in (["up"], ["control"]))
    said = done.err.strip().splitlines()
    return {
        "case": case.number,
        "what": case.what,
        "mutation": case.mutation,
        "line": " ".join(line)[:300],
        "code": done.code,
        "wrong": judge(case, line, done, folder),
        "said": said[-1][:400] if said else "",
        "seconds": round(done.seconds, 2),
    }
