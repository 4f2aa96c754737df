"""Run a launch without the launch package (``bipedsim up``), from the same plan as ``launch/sim.launch.py``."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bipedsim.cli import SAME_WISH, fell_or_stopped, program
from bipedsim.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    BipedSimError,
    ConfigError,
    RecordingError,
    either,
)
from bipedsim.recording import Recording
from bipedsim.recording.bag import message_counts
from bipedsim_ros.bringup.alone import looking_for_robots
from bipedsim_ros.bringup.bringup import (
    DEMO,
    DEMO_CONTROLLER,
    NO_CONTROLLER,
    STOP_FILE,
    Arguments,
    BringUp,
    parameters_text,
    plan,
)
from bipedsim_ros.bringup.checks import check_names
from bipedsim_ros.bringup.processes import Child, describe_exit, environment
from bipedsim_ros.wire import (
    THIS_MACHINE,
    network_environment,
    require_rclpy,
    topics,
)

READY_TIMEOUT_S = 180.0
# Time after which the user is informed of a wait [s].
_USUAL_START_S = 10.0
# Fraction of ticks without a new command above which the user is warned.
LATE_SHARE = 0.1
OUTPUTS = ("bag", "summary.json", "forces.png")
_POLL_S = 0.1
# Maximum time without progress of the simulated time, after the simulation has begun [s].
_STALL_S = 60.0
# The same before the beginning: simulator and controller may compile kernels, which is slow on a busy machine [s].
_COMPILE_S = 600.0


@dataclass(frozen=True)
class BringUpOutcome:
    """Result of a launch.

    Attributes:
        exit_code: 0; 1 if a node failed; 2 if a node refused its parameters; 130 if the user interrupted the launch
            before the end of its duration, or a second time, so that its nodes were killed.
        statistics: Statistics of sim_node; empty if it wrote none.
        failed: Description of the node that failed or was killed; empty if there is none.
        interrupted: Whether the user ended the launch, and the nodes ended cleanly.
    """

    exit_code: int
    statistics: dict[str, Any]
    failed: str = ""
    interrupted: bool = False


class _Output:
    """Prints lines without disturbing a progress bar."""

    def __init__(self, duration: float) -> None:
        self._bar: Any = None
        self._duration = duration
        self._next_share = 0.25
        if duration > 0.0 and sys.stderr.isatty():
            self._bar = tqdm(total=duration, unit="s", bar_format="{l_bar}{bar}| {n:.1f}/{total:.1f} s simulated")

    def show(self, line: str) -> None:
        say(line)

    def progress(self, t: float) -> None:
        if self._bar is not None:
            self._bar.n = min(t, self._duration)
            self._bar.refresh()
        elif self._duration > 0.0 and t / self._duration >= self._next_share:
            self._next_share = t / self._duration + 0.25
            self.show(f"{t:.1f} of {self._duration:.1f} s simulated")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def say(text: str) -> None:
    """Print a line above the progress bar; if the reader of a pipe has ended, continue without output."""
    try:
        tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        print("the reader of the output has ended; the run continues without output", file=sys.stderr)


class Stall:
    """Detects that simulated time does not advance although the simulation is not paused.

    Args:
        controlled: Whether the launch has a controller, whose kernels may have to be compiled first.
    """

    def __init__(self, controlled: bool) -> None:
        self._controlled = controlled
        self._last = -1.0
        self._moved: float | None = None

    def look(self, statistics: Mapping[str, Any], now: float) -> str:
        """Return an error message at the time ``now`` [s], or an empty text."""
        t = float(statistics.get("duration_s") or -1.0)
        if t != self._last or statistics.get("state") == "paused" or self._moved is None:
            self._last, self._moved = t, now
        compiled = t > 0.0 or (bool(statistics) and not self._controlled)
        patience = _STALL_S if compiled else _COMPILE_S
        if now - self._moved <= patience:
            return ""
        state = statistics.get("state", "not there yet")
        stalled = f"simulated time has stood at {max(t, 0.0):.3f} s for {patience:g} s (sim_node is {state})"
        if state == "waiting":
            return (
                f"{stalled}: no first command came. Start its sender within that time, or set `start: immediately` of "
                "sim_node in --params-file"
            )
        return f"{stalled}: a node hangs. Its last message is above; use --log-level debug for more messages"


class _Interrupt:
    """Counts user interrupts (SIGINT, SIGTERM) during a launch: the first ends it cleanly, the second kills the nodes.

    Signals within ``SAME_WISH`` of the first signal count as the same interrupt, even after the nodes have ended.
    """

    def __init__(self) -> None:
        self.count = 0
        self._latest = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, self._unless_same(handler) if self.count and callable(handler) else handler)

    def _on_signal(self, _number: int, _frame: Any) -> None:
        if not (self.count and self._is_same()):
            self.count, self._latest = self.count + 1, time.monotonic()

    def _unless_same(self, handler: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
        return lambda number, frame: None if self._is_same() else handler(number, frame)

    def _is_same(self) -> bool:
        return time.monotonic() - self._latest <= SAME_WISH


def _read_statistics(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def run_bringup(bringup: BringUp, scratch: Path) -> BringUpOutcome:
    """Start the nodes, wait for the end, and end them in order: simulator, controller, recorder.

    Args:
        bringup: The nodes to start.
        scratch: Folder for parameter files; it also contains ``sim.json``, the statistics, if the plan requests it.
    """
    output = _Output(bringup.arguments.duration)
    children: list[Child] = []
    env = environment()
    if network_environment("", os.environ):
        output.show(THIS_MACHINE)
    failed = ""
    statistics_file = scratch / "sim.json"
    with _Interrupt() as interrupt:
        try:
            for node in bringup.nodes:
                params_file = scratch / f"{node.executable}.yaml"
                params_file.write_text(parameters_text(node), encoding="utf-8")
                child = Child(node, params_file, output.show, env)
                children.append(child)
                if not _is_ready(child, output) or interrupt.count:
                    break
            failed = _watch(children, interrupt, statistics_file, output, bringup)
            if interrupt.count:
                output.show("interrupted: the nodes end one after the other. Interrupt again to kill them")
        finally:
            failed, killed = _end_nodes(children, interrupt, output, failed)
            output.close()
    if killed:
        failed = failed or f"{', '.join(killed)} killed at the second interrupt"
    statistics = _with_cause(_read_statistics(statistics_file), _read_statistics(scratch / STOP_FILE), failed)
    if killed:
        return BringUpOutcome(EXIT_INTERRUPTED, statistics, failed)
    if failed:
        # A node that ends before the first tick has refused its parameters and printed the reason.
        refused = not statistics.get("ticks") and any(child.poll() == EXIT_USAGE for child in children)
        return BringUpOutcome(EXIT_USAGE if refused else EXIT_FAILED, statistics, failed)
    # Without a duration, an interrupt is the normal end of a launch and not a failure.
    cut_short = interrupt.count > 0 and bringup.arguments.duration > 0.0
    return BringUpOutcome(EXIT_INTERRUPTED if cut_short else 0, statistics, interrupted=interrupt.count > 0)


def _end_nodes(children: Sequence[Child], interrupt: _Interrupt, output: _Output, failed: str) -> tuple[str, list[str]]:
    """End the nodes in order.

    Returns:
        ``failed``, or else the first node that did not end cleanly; and the names of nodes killed by an interrupt.
    """
    killed: list[str] = []
    announced = False

    def hurry() -> bool:
        nonlocal announced
        if interrupt.count > 1 and not announced:
            announced = True
            output.show(_kill_message([child.name for child in _in_order(children) if child.poll() is None]))
        return interrupt.count > 1

    for child in _in_order(children):
        running = child.poll() is None
        code = child.stop(hurry)
        if running and interrupt.count > 1 and code == -signal.SIGKILL:
            killed.append(child.name)
        elif running and code not in (0, -signal.SIGINT) and not (failed or child.optional):
            # A node that is still loading has no handler for SIGINT yet, so -SIGINT is not a failure.
            failed = f"{child.name} did not end cleanly ({describe_exit(code)})"
    return failed, killed


def _in_order(children: Sequence[Child]) -> list[Child]:
    """Sort nodes in the order of their end: the simulator before the controller, and the recorder last."""
    return sorted(children, key=lambda child: {"sim_node": 0, "recorder_node": 2}.get(child.name, 1))


def _kill_message(names: Sequence[str]) -> str:
    """Return the message for a second interrupt, which kills the nodes of these names."""
    lost = {
        "sim_node": "the statistics of up to the last second",
        "recorder_node": "the last 0.1 s of the recording, and the index of the bag, which stays readable",
    }
    losses = "; ".join(lost[name] for name in names if name in lost)
    return f"interrupted again: {', '.join(names)} killed at once{'; lost: ' if losses else ''}{losses}"


def _is_ready(child: Child, output: _Output) -> bool:
    """Wait until a node is ready, with a message if that takes long; return whether it is ready."""
    if child.wait_ready(_USUAL_START_S):
        return True
    if child.poll() is None:
        output.show(f"waiting for {child.name}, up to {READY_TIMEOUT_S:g} s: the machine is busy")
    return child.wait_ready(READY_TIMEOUT_S - _USUAL_START_S)


def _with_cause(statistics: dict[str, Any], stop: Mapping[str, Any], failed: str) -> dict[str, Any]:
    """Add to sim_node's statistics why the controller stopped, or which node failed."""
    if statistics and stop:
        from bipedsim.analysis import ControllerStop, with_stop

        return {**with_stop(statistics, ControllerStop.read(stop), statistics.get("faults") or ()), **stop}
    if failed and statistics.get("verdict"):
        return {**statistics, "verdict": f"{statistics['verdict']}, but {failed}"}
    return statistics


def _watch(
    children: Sequence[Child], interrupt: _Interrupt, statistics_file: Path, output: _Output, bringup: BringUp
) -> str:
    """Wait until a node ends or the user interrupts; return the failure, or an empty text."""
    duration = bringup.arguments.duration
    # The user starts programs for a vendor bridge by hand, so their commands may come as late as a controller's.
    interface = bringup.arguments.interface
    controlled = bool(interface) or any(node.executable == "controller_node" for node in bringup.nodes)
    stall = Stall(controlled)
    ended: list[Child] = []
    while not interrupt.count:
        for child in children:
            code = child.poll()
            if code is None:
                continue
            if child.optional:
                if child not in ended:
                    ended.append(child)
                    output.show(f"{child.name} has ended ({describe_exit(code)}); the run continues without it")
                continue
            if child.name == "sim_node" and code == 0 and duration > 0.0:
                output.progress(duration)
                return ""
            return f"{child.name} ended ({describe_exit(code)})"
        if len(children) < len(bringup.nodes):
            return (
                f"{children[-1].name} was not ready after {READY_TIMEOUT_S:g} s: it hangs, or the machine is too busy. "
                "End other programs and try again"
            )
        statistics = _read_statistics(statistics_file)
        output.progress(float(statistics.get("duration_s") or 0.0))
        problem = stall.look(statistics, time.monotonic())
        if duration > 0.0 and problem:
            return problem
        time.sleep(_POLL_S)
    return ""


class _SummaryAndPlot:
    """Collects the summary of a run and the thinned data for its plot in one pass over the bag."""

    def __init__(self) -> None:
        from bipedsim.analysis import RunSummary
        from bipedsim.view import USUAL_PANELS, Thinned, columns_of

        self.summary, self.picture = RunSummary(), Thinned()
        self.columns = RunSummary.COLUMNS + columns_of(USUAL_PANELS)

    def add(self, rows: Recording) -> None:
        self.summary.add(rows)
        self.picture.add(rows)


def summarise(bringup: BringUp, statistics: dict[str, Any]) -> tuple[dict[str, Any], Recording | None]:
    """Return the summary of a run and the data for its plot.

    The summary combines sim_node's statistics with the bag, if the run was recorded.

    Raises:
        RecordingError: The bag cannot be read.
    """
    from bipedsim.analysis import gather, with_statistics
    from bipedsim.numerics import announced

    if bringup.run_folder is None:
        return with_statistics({}, statistics), None
    with announced("the summary", 5):
        gathered = gather(bringup.run_folder, _SummaryAndPlot, _SummaryAndPlot().columns)
    recording = gathered.picture.recording()
    if bringup.arguments.scenario:
        from bipedsim.runs import get_scenario

        # The bag does not contain the scenario's pushes.
        recording.pushes = get_scenario(bringup.arguments.scenario).push_times
    return with_statistics(gathered.summary.figures(), statistics), recording


def run_arguments(args: argparse.Namespace) -> int:
    """Run ``bipedsim up`` with its parsed arguments: launch, summary and plot.

    Raises:
        BipedSimError: An argument is invalid, or the recording cannot be read.
    """
    from bipedsim.cli import chosen, code_of, split_params
    from bipedsim.contact import CONTACT_MODELS
    from bipedsim_ros.interfaces import INTERFACES

    require_rclpy()
    user_arguments = chosen(args, Arguments)
    controller_params, contact_params, interface_params = split_params(args.set, CONTACT_MODELS, INTERFACES)
    if args.demo:
        user_arguments = {**DEMO, **user_arguments}
        controller_params = {**DEMO_CONTROLLER, **controller_params}
    with tempfile.TemporaryDirectory(prefix="bipedsim-") as scratch:
        stats_file = Path(scratch) / "sim.json"
        with looking_for_robots(environment(), user_arguments.get("namespace", "")) as refuse_others:
            bringup = plan(
                user_arguments,
                controller_params,
                contact_params,
                stats_file,
                args.overwrite or args.demo,
                interface_params,
            )
            check_names(bringup)
            refuse_others()
        if bringup.run_folder is not None:
            # The path is absolute, so that it does not depend on the working directory of the nodes.
            bringup = replace(bringup, run_folder=bringup.run_folder.resolve())
        if not (bringup.arguments.duration or bringup.arguments.params_file):
            say("no --duration: this runs until Ctrl-C")
        with outputs_replaced(bringup.run_folder):
            outcome = run_bringup(bringup, Path(scratch))
            try:
                conclude(bringup, outcome)
            finally:
                if outcome.failed and outcome.statistics.get("ticks"):
                    # The failure is printed last, below the summary of the incomplete run.
                    print(f"bipedsim up: {outcome.failed}", file=sys.stderr)
    return outcome.exit_code or code_of(outcome.statistics, args.fail_on_fall)


def conclude(bringup: BringUp, outcome: BringUpOutcome) -> None:
    """Summarise and report the run; remove an empty recording if nothing was simulated."""
    statistics = outcome.statistics
    if not statistics.get("ticks"):
        _report_nothing(bringup, outcome)
        return
    if bringup.run_folder is not None:
        # The bag is read after the run, because the nodes need the cores during the run. An hour takes 40 s.
        say(f"reading {bringup.run_folder / 'bag'}")
    try:
        result, recording = summarise(bringup, statistics)
    except KeyboardInterrupt:
        print(
            f"bipedsim up: no summary. To get it, run `bipedsim summary {shlex.quote(str(bringup.run_folder))}`",
            file=sys.stderr,
        )
        raise
    except BipedSimError as error:
        # The failure that ended the run early also explains an incomplete recording.
        if outcome.exit_code == 0:
            raise
        print(f"bipedsim up: no summary: {error}", file=sys.stderr)
        return
    if not outcome.failed:
        # After a failure, the failure is the cause of late and missing commands.
        found = *_no_command_warning(result, statistics, bringup), *timing_warnings(result, statistics)
        result["warnings"] = [*(result["warnings"] or ()), *found] or None
    folder = bringup.run_folder
    written = [] if folder is None else [folder / "bag", *_write_summary(folder, result)]
    _report(result)
    for path in written:
        say(f"wrote {path}")
    if folder is not None and recording is not None:
        _draw(folder, recording, must_succeed=outcome.exit_code == 0)
    elif fell_or_stopped(result):
        say(f"to see how, repeat the run with --record FOLDER, then run {program()} view FOLDER")


def _report_nothing(bringup: BringUp, outcome: BringUpOutcome) -> None:
    """Print why nothing was simulated, and remove the empty recording."""
    # The cause precedes its consequence.
    print(f"bipedsim up: {'; '.join(filter(None, (outcome.failed, _nothing(outcome))))}", file=sys.stderr)
    if bringup.run_folder is not None:
        # sim_node repeats the first state while it holds t = 0; such a bag is worthless. Without statistics, joint
        # states in the bag are the only evidence of a simulation.
        has_statistics = bool(outcome.statistics)
        discard_empty(bringup.run_folder, lambda names: has_statistics or topics.JOINT_STATES.name not in names)


def _write_summary(folder: Path, result: Mapping[str, Any]) -> list[Path]:
    """Write summary.json; return its path, or nothing if it cannot be written.

    The summary is written before everything else, because the rest may be interrupted.
    """
    from bipedsim_ros.loop import write_json

    path = folder / "summary.json"
    try:
        write_json(path, dict(result))
    except OSError as error:
        reason = f"{path} cannot be written ({error.strerror})"
        print(
            f"bipedsim up: {reason}. Free disk space, then run `bipedsim summary {shlex.quote(str(folder))}`",
            file=sys.stderr,
        )
        return []
    return [path]


def _draw(folder: Path, recording: Recording, must_succeed: bool) -> None:
    """Plot a run into its folder.

    Args:
        folder: Folder of the run.
        recording: Data for the plot.
        must_succeed: Whether to raise an error of the plot; else it is only printed.
    """
    from bipedsim.view import plot

    path = folder / "forces.png"
    say(f"drawing {path}")
    try:
        plot(recording, path)
    except KeyboardInterrupt:
        print(f"bipedsim up: no plot. To get it, run `bipedsim plot {shlex.quote(str(folder))}`", file=sys.stderr)
        raise
    except BipedSimError as error:
        if must_succeed:
            raise
        print(f"bipedsim up: no plot: {error}", file=sys.stderr)
        return
    say(f"wrote {path}")
    say(f"see it move: {program()} view {shlex.quote(os.path.relpath(folder))}")


def _nothing(outcome: BringUpOutcome) -> str:
    """Return the message for a launch that has simulated nothing."""
    statistics = outcome.statistics
    reason = "interrupted before the first tick" if outcome.interrupted else "no tick was simulated"
    if statistics.get("gave_up_why"):
        # outcome.failed already explains why no command came.
        return reason
    if statistics.get("state") == "waiting" and not statistics.get("commands_received"):
        dropped = statistics.get("commands_dropped_by_kind") or {}
        received = "no command arrived"
        if dropped:
            kinds = ", ".join(f"{count} {kind}" for kind, count in dropped.items())
            received = f"{sum(dropped.values())} commands arrived, all invalid ({kinds}): see the warnings above"
        waited_for = either(statistics.get("command_topics") or [kind.name for kind in topics.COMMAND_KINDS])
        return f"{reason}: sim_node waited at t = 0 for a command on {waited_for}; {received}"
    if not (statistics or outcome.interrupted):
        return "sim_node left no statistics, so there is no summary"
    return f"{reason}, so there is no summary"


def discard_empty(folder: Path, empty: Callable[[set[str]], bool]) -> bool:
    """Remove and report the bag of a run that never began, because it would only obstruct the next run.

    Args:
        folder: Folder of the run.
        empty: Returns whether a bag with messages on these topics is worthless.

    Returns:
        Whether the bag was removed.
    """
    bag = folder / "bag"
    try:
        recorded = {topic for topic, count in message_counts(bag).items() if count}
    except RecordingError:
        # The recorder ended before it created the bag, or left an unreadable file.
        return False
    if not empty(recorded):
        return False
    shutil.rmtree(bag)
    print(f"{bag}: removed, because nothing was recorded", file=sys.stderr)
    return True


@contextmanager
def outputs_replaced(folder: Path | None) -> Iterator[None]:
    """Move the outputs of an earlier run in ``folder`` aside until the new run has a bag.

    If the new run gets no bag, because an argument is invalid or a node fails, the earlier outputs are restored. A
    folder that does not exist is created, and removed again if nothing was recorded.

    Raises:
        ConfigError: The folder cannot be created.
    """
    created = folder is not None and not folder.exists()
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"record = {folder}: the folder cannot be created ({error.strerror})") from error
    present = [path for name in OUTPUTS if folder is not None and (path := folder / name).exists()]
    if folder is None or not present:
        try:
            yield
        finally:
            # rmdir succeeds only for an empty folder, that is, if nothing was recorded.
            if folder is not None and created:
                with suppress(OSError):
                    folder.rmdir()
        return
    aside = Path(tempfile.mkdtemp(prefix="replaced-", dir=folder))
    for path in present:
        path.rename(aside / path.name)
    try:
        yield
    finally:
        if not (folder / "bag").exists() or discard_empty(folder, lambda names: topics.JOINT_STATES.name not in names):
            for path in present:
                if not path.exists():
                    (aside / path.name).rename(path)
            print(f"{folder}: the earlier run was restored", file=sys.stderr)
        shutil.rmtree(aside)


def _no_command_warning(result: Mapping[str, Any], statistics: Mapping[str, Any], bringup: BringUp) -> Iterator[str]:
    """Yield a warning if no valid command came, unless the user asked for a robot that its drives hold."""
    from bipedsim.analysis import no_command_text

    none, held = no_command_text(result), statistics.get("start") == "hold_position"
    if not none or (held and bringup.arguments.controller == NO_CONTROLLER and not result.get("commands_dropped")):
        return
    drives = "held the joints (start: hold_position)" if held else "had zero torque (start: immediately)"
    yield f"commands: {none}. The drives {drives}. Start your controller, and compare its topic with `ros2 topic info`"


def timing_warnings(result: Mapping[str, Any], statistics: Mapping[str, Any]) -> Iterator[str]:
    """Yield warnings about silences, late ticks and late commands of a run.

    Args:
        result: The summary.
        statistics: Statistics of the simulator.
    """
    from bipedsim.analysis import missed_share, silence_text

    priority = statistics.get("real_time_priority") or 0
    lock_step = result.get("clock") == "lock_step"
    silent = silence_text(result)
    if silent:
        waited = (
            " sim_node waited for lock_step_timeout of wall time, and then took the step without a command. Set "
            "it in --params-file for a controller that needs longer."
        )
        yield (
            f"in simulated time, no commands came {silent}: the controller or its connection had stopped."
            f"{waited if lock_step else ''} See the warnings above, and command_timeout and timeout_mode for the "
            "torques of the joints meanwhile"
        )
    period = 1e6 / result["rate_hz"]
    late = (result.get("lateness_us") or {}).get("p99")
    if late is not None and late > period:
        yield (
            f"1 in 100 ticks began more than {late / 1e3:.3g} ms late, {late / period:.1f} periods of {period:.0f} us: "
            f"{_lateness_advice(priority, os.getloadavg()[0], len(os.sched_getaffinity(0)))} "
            "(docs/ros_interface.md, Timing)"
        )
    share = missed_share(result, heard=True)
    # In lock step, every missed command is already part of the warning about silence.
    if share > LATE_SHARE and not lock_step:
        trip = result["round_trip_us"] or {}
        took = " and ".join(f"{trip[key]:.0f} us ({key})" for key in ("p50", "p99") if trip.get(key) is not None)
        yield (
            f"{share:.1%} of the{' other' * bool(silent)} ticks got no new command in time: a tick has {period:.0f} us"
            f"{', from state to command it took ' + took if took else ''}. The machine is too busy, the controller too "
            "slow, or the rate too high. Choose a lower --rate, or use --clock lock_step, which waits for every command"
        )


def _lateness_advice(priority: int, load: float, cores: int) -> str:
    """Return the likely cause of late ticks, and the possible actions.

    Args:
        priority: Real-time priority of the simulator; 0 if it had none.
        load: Mean number of programs that wanted a core in the last minute.
        cores: Number of cores for the nodes.
    """
    actions = ["choose a lower --rate", "or use --clock lock_step if the run need not keep to the wall clock"]
    if not priority:
        actions.insert(0, "permit real-time priority")
    if load > cores:
        actions.insert(0, "end other programs")
    advice = ", ".join(actions)
    return f"{_cause_of_lateness(priority, load, cores)}. {advice[0].upper()}{advice[1:]}"


def _cause_of_lateness(priority: int, load: float, cores: int) -> str:
    """Return the likely cause of late ticks; arguments as for :func:`_lateness_advice`."""
    if not priority:
        return f"the nodes had no real-time priority on {cores} cores with a load of {load:.1f}"
    busy = "the machine itself was too busy: other real-time programs, interrupts, or the host of a virtual machine"
    try:
        runtime, period = (
            int(Path(f"/proc/sys/kernel/sched_rt_{name}_us").read_text()) for name in ("runtime", "period")
        )
    except OSError:
        runtime, period = -1, 1
    throttle = f"Linux stopped them after {runtime / period:.0%} of a second (kernel.sched_rt_runtime_us), or "
    return f"the nodes already had real-time priority {priority}, so {throttle * (runtime >= 0)}{busy}"


def _report(result: dict[str, Any]) -> None:
    from bipedsim.analysis import summary_lines

    say("\n".join(summary_lines(result, hidden=("warnings",))))
    for warning in result["warnings"] or ():
        print(f"warning: {warning}", file=sys.stderr)
