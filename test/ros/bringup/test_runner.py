"""The runner of a launch: earlier runs, readers that close the pipe, and pauses."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from recording_support import joint_state, serialise, wrench, write_bag

from bipedsim.analysis import with_statistics
from bipedsim.cli import program
from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE
from bipedsim_ros.bringup import plan, runner
from bipedsim_ros.bringup.bringup import Arguments, BringUp
from bipedsim_ros.bringup.runner import (
    OUTPUTS,
    BringUpOutcome,
    Stall,
    conclude,
    outputs_replaced,
    say,
    timing_warnings,
)

JOINTS, WRENCH = "sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped"


def earlier(folder: Path) -> Path:
    """Leave a run in a folder, and something of the user's."""
    (folder / "bag").mkdir(parents=True)
    for name in ("bag/bag_0.mcap", "summary.json", "forces.png", "notes.txt"):
        (folder / name).write_text("earlier")
    return folder


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("command", ["up", "control"])
def test_a_wrong_argument_costs_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    folder = earlier(tmp_path / "run")
    assert main([command, "--controller", "nonsense", "--record", str(folder), "--overwrite"]) == EXIT_USAGE
    assert "unknown controller 'nonsense'" in capsys.readouterr().err
    assert (folder / "bag" / "bag_0.mcap").read_text() == "earlier"
    assert left(folder) == {*OUTPUTS, "notes.txt"}


@pytest.mark.parametrize("topic", ["/joint_states", "/diagnostics", None])
def test_an_earlier_run_goes_when_there_is_another(tmp_path: Path, topic: str | None) -> None:
    folder = earlier(tmp_path / "run")
    with outputs_replaced(folder):
        assert not (folder / "bag").exists()
        if topic == "/joint_states":
            write_bag(folder / "bag", [(topic, JOINTS, joint_state(0, ["a"], [0], [0], [0]))]).close()
        elif topic:
            write_bag(folder / "bag", [(topic, "std_msgs/msg/Bool", serialise("std_msgs/msg/Bool", data=True))]).close()
    if topic == "/joint_states":
        assert left(folder) == {"bag", "notes.txt"}
        assert (folder / "bag" / "metadata.yaml").exists()
    else:
        assert left(folder) == {*OUTPUTS, "notes.txt"}
        assert (folder / "bag" / "bag_0.mcap").read_text() == "earlier"


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_a_folder_in_which_nothing_was_recorded_goes_unless_it_was_there(
    tmp_path: Path, recorded: bool, there: bool
) -> None:
    folder = tmp_path / "run"
    if there:
        folder.mkdir()
    with outputs_replaced(folder):
        if recorded:
            (folder / "bag").mkdir()
    assert folder.exists() == (recorded or there)


def test_what_fails_on_the_way_brings_the_earlier_run_back(tmp_path: Path) -> None:
    folder = earlier(tmp_path / "run")

    def fail() -> None:
        with outputs_replaced(folder):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert left(folder) == {*OUTPUTS, "notes.txt"}


def test_a_reader_that_leaves_ends_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An example is `| head -1`.

    The threads that forward the output of nodes used to fail, and the nodes blocked on full pipes.
    """
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        for _ in range(3):
            say("a line")
        print("another", flush=True)
    assert capsys.readouterr().err.count("the reader of the output has ended") == 1


def test_a_pause_is_no_stall() -> None:
    stall, moving = Stall(controlled=True), {"duration_s": 1.0, "state": "running"}
    assert stall.look(moving, 0.0) == ""
    for now in range(1, 400):
        assert stall.look({"duration_s": 1.0, "state": "paused"}, float(now)) == ""
    assert stall.look(moving, 400.0 + runner._STALL_S - 2.0) == ""
    stood = stall.look(moving, 460.0)
    assert stood.startswith("simulated time has stood at 1.000 s for 60 s (sim_node is running): a node hangs.")


def test_a_first_command_that_never_comes_is_told_with_what_to_do() -> None:
    stall, held = Stall(controlled=False), {"duration_s": 0.0, "state": "waiting"}
    assert stall.look(held, 0.0) == ""
    said = "simulated time has stood at 0.000 s for 60 s (sim_node is waiting): no first command came. Start its"
    assert stall.look(held, 60.5).startswith(said)


class Ended:
    """A node of a launch that ends at the nth poll."""

    def __init__(self, name: str, optional: bool, looks: int, code: int) -> None:
        self.name, self.optional, self._looks, self._code = name, optional, looks, code

    def poll(self) -> int | None:
        self._looks -= 1
        return self._code if self._looks < 0 else None


def test_a_page_that_ends_does_not_end_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bringup = plan({"duration": 3.0})
    children: list[Any] = [Ended("sim_node", False, 4, 0), Ended("view_node", True, 1, -9)]
    output, interrupt = runner._Output(3.0), runner._Interrupt()
    assert runner._watch(children, interrupt, tmp_path / "none.json", output, bringup) == ""
    said = capsys.readouterr().out
    assert said.count("view_node has ended (killed by SIGKILL); the run continues without it") == 1
    children = [Ended("sim_node", False, 4, 0), Ended("controller_node", False, 1, -9)]
    assert "controller_node ended" in runner._watch(children, interrupt, tmp_path / "none.json", output, bringup)


def test_a_node_that_ended_is_in_the_verdict() -> None:
    stood = {"verdict": "stood 2 s, did not fall", "ticks": 2000}
    ended = "controller_node ended (killed by SIGKILL)"
    assert runner._with_cause(stood, {}, "") == stood
    assert runner._with_cause({}, {}, ended) == {}
    assert runner._with_cause(stood, {}, ended)["verdict"] == f"stood 2 s, did not fall, but {ended}"
    stop = {"gave_up_at_s": 1.5, "gave_up_why": "its update raised KeyError: 'l_knee'", "gave_up_kind": "raised"}
    judged = runner._with_cause(stood, stop, "controller_node ended (exit code 1)")
    why = "the controller was stopped at t = 1.500 s: its update raised KeyError: 'l_knee'"
    assert judged == {**stood, **stop, "verdict": f"stood 2 s, did not fall, but {why}"}


def test_the_sign_of_the_ankle_wrenches_reaches_the_recorder(tmp_path: Path) -> None:
    parameters = tmp_path / "nodes.yaml"
    parameters.write_text("controller_node:\n  ros__parameters:\n    ft_sign: -1.0\n")
    bringup = plan({"record": str(tmp_path / "run"), "params_file": str(parameters)})
    assert bringup.nodes[0].parameters["ft_sign"] == -1.0
    assert "ft_sign" not in plan({"record": str(tmp_path / "run")}).nodes[0].parameters


def test_what_cannot_be_written_at_the_end_is_told_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recorder has ended because of a full disk: no traceback, and the statistics are printed."""
    states = [("/joint_states", JOINTS, joint_state(i * 1_000_000, ["a"], [i], [0], [0])) for i in range(5)]
    states += [("/left_foot/wrench", WRENCH, wrench(i * 1_000_000, [0, 0, 9 + i, 0, 0, 0])) for i in range(5)]
    write_bag(tmp_path / "bag", states).release()
    for name in ("summary.json", "forces.png"):
        (tmp_path / name).mkdir()
    counted = {"robot": "twofoot", "ticks": 5, "duration_s": 0.005, "rate_hz": 1000.0}
    conclude(BringUp(Arguments(), (), tmp_path), BringUpOutcome(1, counted, "recorder_node ended (exit code 1)"))
    out, err = capsys.readouterr()
    assert "summary.json cannot be written" in err
    assert f"run `bipedsim summary {tmp_path}`" in err
    assert "no plot" in err
    assert "twofoot" in out
    assert f"wrote {tmp_path / 'bag'}\n" in out
    assert "wrote" not in out.replace(f"wrote {tmp_path / 'bag'}", "")
    assert {path.name for path in tmp_path.iterdir()} == {"bag", "summary.json", "forces.png"}


HELD = {"state": "waiting", "ticks": 0, "commands_received": 0}


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (BringUpOutcome(130, {}, interrupted=True), "interrupted before the first tick, so there is no summary"),
        (
            BringUpOutcome(0, HELD, interrupted=True),
            "before the first tick: sim_node waited at t = 0 for a command",
        ),
        (BringUpOutcome(0, HELD), "no tick was simulated: sim_node waited at t = 0 for a command"),
        (BringUpOutcome(0, {**HELD, "state": "paused"}), "no tick was simulated, so there is no summary"),
        # Killed, it may have simulated for up to a second.
        (
            BringUpOutcome(130, {}, "sim_node killed at the second interrupt"),
            "interrupt; sim_node left no statistics, so there",
        ),
    ],
)
def test_why_nothing_was_simulated_is_told(
    outcome: BringUpOutcome, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    conclude(BringUp(Arguments(), (), None), outcome)
    assert said in capsys.readouterr().err


COUNTED = {"robot": "biped14", "ticks": 5000, "duration_s": 5.0, "rate_hz": 1000.0, "clock": "real_time"}


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (31_000.0, "1 in 100 ticks began more than 31 ms late, 31.0 periods of 1000 us"),
        (900.0, ""),
        (None, ""),
    ],
)
def test_ticks_that_begin_periods_late_are_told_with_what_to_do(
    late: float | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    conclude(BringUp(Arguments(), (), None), BringUpOutcome(0, {**COUNTED, "lateness_us": {"p50": 60.0, "p99": late}}))
    err = capsys.readouterr().err
    assert said in err
    assert ("docs/ros_interface.md" in err) == bool(said)


def test_a_priority_that_the_nodes_have_is_not_recommended() -> None:
    late = with_statistics({}, {**COUNTED, "lateness_us": {"p99": 12_000.0}})
    (without,), (with_priority,) = (
        tuple(timing_warnings(late, {"real_time_priority": priority})) for priority in (0, 50)
    )
    assert "permit real-time priority" in without.lower()
    assert "permit real-time priority" not in with_priority.lower()
    assert "already had real-time priority 50" in with_priority
    assert "the machine itself was too busy" in with_priority


@pytest.mark.parametrize(("load", "busy"), [(0.5, False), (1.9, False), (7.0, True)])
def test_other_programs_are_blamed_only_where_the_cores_are_overloaded(
    load: float, busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(runner.os, "sched_getaffinity", lambda _pid: {0, 1})
    (warning,) = timing_warnings(with_statistics({}, {**COUNTED, "lateness_us": {"p99": 12_000.0}}), {})
    assert ("end other programs" in warning.lower()) == busy


def test_warnings_of_the_terminal_are_in_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "summarise", lambda _bringup, counted: (with_statistics({}, counted), None))
    statistics = {**COUNTED, "lateness_us": {"p99": 12_000.0}, "missed_commands": 2500, "commands_received": 2500}
    conclude(BringUp(Arguments(), (), tmp_path), BringUpOutcome(0, {**statistics, "warnings": ["two robots"]}))
    warnings = json.loads((tmp_path / "summary.json").read_text())["warnings"]
    assert len(warnings) == 3
    assert warnings[0] == "two robots"
    printed = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert printed == [f"warning: {warning}" for warning in warnings]
    conclude(BringUp(Arguments(), (), tmp_path), BringUpOutcome(0, COUNTED))
    assert json.loads((tmp_path / "summary.json").read_text())["warnings"] is None


@pytest.mark.parametrize(
    ("start", "controller", "dropped", "warned"),
    [
        ("hold_position", "none", 0, ""),
        ("hold_position", "none", 3, "hold_position"),
        ("hold_position", "topic_based", 0, "hold_position"),
        ("immediately", "none", 0, "immediately"),
    ],
)
def test_a_robot_that_the_user_only_looks_at_needs_no_commands(
    start: str, controller: str, dropped: int, warned: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = {**COUNTED, "commands_received": 0, "missed_commands": 0, "commands_dropped": dropped, "start": start}
    counted |= {"commands_dropped_by_kind": {"names": dropped} if dropped else {}, "round_trip_us": {}}
    conclude(BringUp(Arguments(controller=controller), (), None), BringUpOutcome(0, counted))
    printed = capsys.readouterr()
    assert [part in printed.err for part in ("warning: commands", f"start: {start}")] == [bool(warned)] * 2
    assert "commands" in printed.out


def test_a_fall_that_was_not_recorded_is_followed_by_how_to_see_it(capsys: pytest.CaptureFixture[str]) -> None:
    for figures, told in (({}, False), ({"fell_at_s": 2.0, "verdict": "fell at 2.0 s"}, True)):
        conclude(BringUp(Arguments(), (), None), BringUpOutcome(0, {**COUNTED, **figures}))
        said = "to see how, repeat the run with --record FOLDER, then run bipedsim view FOLDER\n"
        assert capsys.readouterr().out.endswith(said) == told


def test_the_next_command_is_written_as_this_one_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make demo` calls .venv/bin/bipedsim, which the shell of a newcomer does not find by its name."""
    found = tmp_path / ".venv" / "bin" / "bipedsim"
    found.parent.mkdir(parents=True)
    found.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(found), "up"])
    monkeypatch.setenv("PATH", "")
    assert program() == ".venv/bin/bipedsim"
    monkeypatch.setenv("PATH", str(found.parent))
    assert program() == "bipedsim"
    monkeypatch.setattr(sys, "argv", ["/usr/lib/python3/runpy.py"])
    assert program() == "bipedsim"
