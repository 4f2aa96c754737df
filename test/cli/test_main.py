"""The command line: output, files, errors and exit codes."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from marks import sampled
from physics_support import SUMMARY_KEYS
from PIL import Image
from recording_support import standing

from bipedsim.cli.main import main
from bipedsim.cli.options import key_values
from bipedsim.errors import EXIT_FAILED, EXIT_USAGE
from bipedsim.model import ROBOTS
from bipedsim.recording import export_csv, load_recording

COMPILING = ("compiling ", "compiled ")
"""Beginnings of the messages that appear if a kernel is not in the cache yet."""


def summary_of(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, object]:
    assert main(["run", "--json", *args]) == 0
    result: dict[str, object] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.long
@pytest.mark.parametrize("robot", ["biped14", "talos", "g1"])
def test_standing_carries_the_weight_and_nothing_moves(robot: str, capsys: pytest.CaptureFixture[str]) -> None:
    summary = summary_of(capsys, "--robot", robot, "--duration", "10")
    assert set(summary) >= SUMMARY_KEYS
    assert summary["robot"] == robot
    assert summary["duration_s"] == 10.0
    assert summary["fz_max_error_N"] < 0.1
    assert summary["state_changes"] == 0
    assert summary["unresolved_steps"] == 0
    assert summary["foot_drift_m"] < 1e-6
    assert summary["cop_inside_fraction"] == 1.0


@pytest.mark.long
@pytest.mark.parametrize("robot", ["biped14", "talos", "g1"])
def test_squats_keep_the_feet_on_the_ground(robot: str, capsys: pytest.CaptureFixture[str]) -> None:
    summary = summary_of(capsys, "--robot", robot, "--scenario", "squat", "--set", "squat_period=1", "--duration", "5")
    assert summary["state_changes"] <= 12
    assert summary["penetration_m"] < 1e-4
    assert summary["foot_drift_m"] < 1e-5


@pytest.mark.parametrize("robot", sampled(["biped14", "talos"]))
def test_drop_lands_without_penetration_and_stands(robot: str, capsys: pytest.CaptureFixture[str]) -> None:
    summary = summary_of(capsys, "--robot", robot, "--scenario", "drop", "--duration", "4")
    assert summary["penetration_m"] < 1e-4
    assert summary["fz_max_error_N"] < 1.0


def test_push_is_felt_and_survived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "push.npz"
    summary_of(capsys, "--scenario", "push", "--duration", "4", "--output", str(run))
    recording = load_recording(run)
    assert recording.pushes == ((2.0, 2.1),)
    sideways = recording.wrench[:, :, 1].sum(axis=1)
    during = (recording.t > 2.0) & (recording.t < 2.1)
    assert np.abs(sideways[during]).max() > 0.02 * recording.weight
    assert np.abs(sideways[recording.t < 2.0]).max() < 1e-3
    assert recording.base_pose[-1, 2] > 0.7


def test_what_a_run_was_is_said_before_it_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during drawing costs only the figure."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bipedsim.view.plot", interrupted)
    run = tmp_path / "run.npz"
    assert main(["run", "--duration", "0.05", "--output", str(run), "--plot", str(tmp_path / "run.png")]) == 130
    printed = capsys.readouterr().out
    assert "did not fall" in printed
    assert f"wrote {run}" in printed
    assert "run.png" not in printed
    assert len(load_recording(run)) == 50


@pytest.mark.long
def test_a_run_longer_than_a_block_is_exported_like_one_that_is_held_whole(tmp_path: Path) -> None:
    r = standing(40_000)
    r.save(tmp_path / "run.npz")
    for span, rows in (([], r), (["--from", "1", "--to", "35"], r.rows(slice(1000, 35_001)))):
        assert main(["export", str(tmp_path / "run.npz"), "-o", str(tmp_path / "run.csv"), *span]) == 0
        export_csv(rows, tmp_path / "whole.csv")
        assert (tmp_path / "run.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert main(["export", str(tmp_path / "run.npz"), "--from", "99"]) == 2


def test_run_writes_what_plot_and_export_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "squat.npz"
    assert main(["run", "--scenario", "squat", "--duration", "0.5", "--output", str(run)]) == 0
    assert "real time factor" in capsys.readouterr().out
    assert main(["export", str(run)]) == 0
    assert f"wrote {tmp_path / 'squat.csv'}" in capsys.readouterr().out
    # Only a file that the user names is replaced, because it may be of the other format or of another program.
    written = (tmp_path / "squat.csv").read_bytes()
    for options in ([], ["--format", "csv"]):
        assert main(["export", str(run), *options]) == 2
        assert f"{tmp_path / 'squat.csv'}: exists" in capsys.readouterr().err
        assert (tmp_path / "squat.csv").read_bytes() == written
    for options, note in (["--format", "csv"], False), ([], True), (["--format", "columns"], False):
        assert main(["export", str(run), "-o", str(tmp_path / "squat.csv"), *options]) == 0
        printed = capsys.readouterr().out
        assert f"replaced {tmp_path / 'squat.csv'}" in printed
        assert ("--format columns" in printed) == note
    assert main(["export", str(tmp_path / "squat.csv")]) == 2
    assert "-o" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "squat.csv"), "-o", str(tmp_path / "again.csv")]) == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "squat.csv").read_bytes()
    assert main(["export", str(run), "--format", "mat", "-o", str(tmp_path / "named")]) == 0
    assert f"wrote {tmp_path / 'named.mat'}" in capsys.readouterr().out
    # A file that exists, such as a device, keeps its name.
    (tmp_path / "there").touch()
    assert main(["export", str(run), "-o", str(tmp_path / "there")]) == 0
    assert f"replaced {tmp_path / 'there'}" in capsys.readouterr().out
    for folder in (".", "..", "/"):
        assert main(["export", str(run), "-o", folder]) == 2
    assert main(["plot", str(run)]) == 0
    rows = list(csv.reader((tmp_path / "squat.csv").open()))
    recording = load_recording(run)
    assert len(rows) == 1 + len(recording) == 501
    assert rows[0][0] == "t[s]"
    assert float(rows[-1][0]) == pytest.approx(0.5)
    assert (tmp_path / "squat.png").read_bytes().startswith(b"\x89PNG")


def test_a_controller_of_the_users_own_runs_without_ros(capsys: pytest.CaptureFixture[str]) -> None:
    summary = summary_of(capsys, "--controller", "user_controllers:Feedback", "--duration", "0.2")
    assert summary["duration_s"] == 0.2


@pytest.mark.slow
def test_same_run_same_bits(tmp_path: Path) -> None:
    runs = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.npz"
        command = [sys.executable, "-m", "bipedsim.cli.main", "run", "--scenario", "squat", "--duration", "0.4"]
        subprocess.run([*command, "--output", str(path)], check=True, capture_output=True)
        runs.append(load_recording(path))
    np.testing.assert_array_equal(runs[0].joint_position, runs[1].joint_position)
    np.testing.assert_array_equal(runs[0].wrench, runs[1].wrench)


def test_robots_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robots", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert tuple(row["name"] for row in rows) == tuple(ROBOTS)
    biped = next(row for row in rows if row["name"] == "biped14")
    assert (biped["joints"], biped["mass_kg"]) == (14, 70.0)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "--robot", "biped41"], ["biped41", "did you mean 'biped14'"]),
        (["run", "--robot", "no/such/robot.yaml"], ["no/such/robot.yaml"]),
        (["run", "--controller", "postur"], ["postur", "posture"]),
        (["run", "--scenario", "dance"], ["dance", "drop, fall, hang, ice, jump, kick, one_leg_kick, push"]),
        (["run", "--contact-model", "penalty"], ["penalty", "one_step"]),
        (["run", "--duration", "-1"], ["duration = -1"]),
        (["run", "--rate", "nan"], ["rate = nan"]),
        (["run", "--physics-dt", "3e-4"], ["0.001", "0.0003"]),
        (["run", "--set", "squat_depth"], ["NAME=VALUE"]),
        (["run", "--set", "squat_dept=0.1"], ["squat_dept", "squat_depth"]),
        (["run", "--set", "one_step.gamma=5"], ["gamma = 5", "maximum 1.0"]),
        (["run", "--controller", "no_such_module:Mine"], ["no_such_module", "cannot be imported", str(Path.cwd())]),
        (["run", "--controller", "user_controllers:Mine"], ["'Mine'", "Feedback"]),
        (["run", "--robot", "compass"], ["pfl, finite_time", "--controller pfl"]),
        (["run", "--hardware", "real"], ["error: unknown hardware 'real'; did you mean 'realistic'?", "{preset: NAME"]),
        (["run", "--controller", "user_controllers:WrongShape"], ["shape (3,)", "Command(tau_joint), shape (14,)"]),
        (["run", "--controller", "user_controllers:NoCommand"], ["returned ndarray"]),
        (["plot", "no/such/bag"], ["no/such/bag"]),
        (["run", "--record", "runs/x"], ["--output runs/x", "runs/x.npz", "`bipedsim up --record FOLDER`"]),
        (["export", "run.npz", "-o", "run.c3dd"], ["run.c3dd", ".c3d, .csv", "--format"]),
        (["export", "run.npz", "-o", "other.yaml"], ["other.yaml", ".csv", "--format"]),
        (["export", "no/such/run.npz"], ["no/such/run.npz"]),
        (["run", "--hardware", "{preset: []}"], ["unknown preset '[]'", "ideal, realistic"]),
        (["run", "--hardware", "{mass_scale: 2020-13-45}"], ["mass_scale"]),
        (["run", "--robot", "/dev/zero"], ["/dev/zero: larger than 32 MiB"]),
        (["plot", "x" * 5000], ["xxx", os.strerror(errno.ENAMETOOLONG)]),
        (["replay", "x" * 5000 + ".npz"], ["xxx", os.strerror(errno.ENAMETOOLONG)]),
    ],
)
def test_wrong_input_is_named_without_a_traceback(
    args: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    # A simulator that starts before the error may have to compile first, and reports it.
    lines = capsys.readouterr().err.splitlines(keepends=True)
    message = "".join(line for line in lines if not line.startswith(COMPILING))
    assert message.startswith(f"bipedsim {args[0]}: error: ")
    assert message.count("\n") == 1
    for word in words:
        assert word in message


BALANCE = """
from collections import UserDict

from bipedsim.control.posture.posture import PostureController as Borrowed


class Balance:
    def reset(self, observation):
        pass

    def update(self, observation):
        pass


class Forgetful:
    def update(self, observation):
        pass


class Stiff(Balance):
    def __init__(self, robot):
        pass


class Idle:
    def reset(self, observation):
        pass

    update = None
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("balance_here", "balance_here.py: balance_here:Balance or balance_here:Forgetful or "),
        ("balance_here.py", "without .py: balance_here:Class"),
        ("balance_here.py:Balance", "without .py: balance_here:Balance"),
        ("my/balance_here.py:Balance", "without .py: my.balance_here:Balance"),
        ("balance_here:Balanse", "did you mean 'Balance'? Choices: Balance, Forgetful, Stiff\n"),
        ("balance_here:Forgetful", "has no method reset(self, observation)"),
        ("balance_here:Idle", "has no method update(self, observation)"),
        ("balance_here:Stiff", "is made as Stiff(robot, params, dt), but its __init__ takes (robot) (too many"),
        ("balance_here:Balance", "is made as Balance(robot, params, dt), but its __init__ takes () (too many"),
        ("balance_here.Stiff", "did you mean balance_here:Stiff?"),
        ("balance_here.parts:Balance", "No module named 'balance_here.parts'"),
        ("broken_here:Balance", "cannot be imported: 'broken_here' (No module named 'no_such_thing')\n"),
        ("typo_here:Balance", "typo_here.py, line 1"),
        ("elsewhere:Balance", "{folder}, PYTHONPATH"),
    ],
)
def test_a_controller_that_is_named_wrongly_is_explained(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "balance_here.py").write_text(BALANCE)
    (tmp_path / "broken_here.py").write_text("import no_such_thing\n")
    (tmp_path / "typo_here.py").write_text("class Balance(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("balance_here", "broken_here", "typo_here"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert main(["run", "--controller", name]) == 2
    assert said.format(folder=tmp_path) in capsys.readouterr().err


def test_a_run_is_written_as_npz_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--duration", "0.01", "--output", str(tmp_path / "run.csv")]) == 2
    assert "bipedsim export" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_readers_are_not_shown_what_a_run_without_ros_cannot_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--duration", "0.05"]) == 0
    printed = capsys.readouterr().out
    assert "real time factor" in printed
    assert "None" not in printed
    assert "missed_commands" not in printed


@pytest.mark.long
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1, 0.3, 1.0])
def test_ctrl_c_is_answered_in_one_line_from_the_first_import_on(delay: float) -> None:
    """The limit is for the imports of ``main``, not for the start of the interpreter."""
    code = "import sys; from bipedsim.cli.main import main; print('up', flush=True); sys.exit(main())"
    arguments = ["run", "--duration", "1000"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "up\n"
        time.sleep(0.02 + delay)
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 130
        said = process.stderr.read().splitlines()
        *before, last = [line for line in said if not line.startswith(COMPILING)]
        assert last == "bipedsim: interrupted"
        # On a fast machine, the last delay ends within the run, and the run reports the time of the interrupt.
        assert all(line.startswith("bipedsim run: interrupted at t = ") for line in before[:1])
        assert not before[1:]


def test_ctrl_c_in_a_destructor_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dies:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    def answer(_argv: object) -> int:
        Dies()
        return 0

    shown: list[object] = []
    monkeypatch.setattr("bipedsim.cli.main._run_command", answer)
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    assert main([]) == 0
    assert not shown
    Dies()
    assert len(shown) == 1, "nobody else is kept from seeing it"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_simulated_until_then(tmp_path: Path, number: signal.Signals) -> None:
    """The command says so before it computes and writes results, which takes seconds.

    Batch systems and `timeout` end a job with SIGTERM. The simulated data is then as valuable as after Ctrl-C.
    """
    output, picture = tmp_path / "run.npz", tmp_path / "run.png"
    # The bar shows that it is on its way. However slow the machine is, the drawing is no long operation here.
    code = (
        "import sys; from bipedsim.cli import main as cli, waiting; from bipedsim.runs import runner; "
        "waiting.PATIENCE = 1e6; "
        "runner.ProgressBar = lambda ticks, **_: (t for t in ticks if t != 250 or not print('up', flush=True)); "
        "made = runner._result; "
        "runner._result = lambda *run: print('figures', file=sys.stderr, flush=True) or made(*run); "
        "sys.exit(cli.main())"
    )
    # Too long for the memory.
    words = ["run", "--duration", "10000000", "--output", str(output), "--plot", str(picture)]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        printed, complaint = process.communicate(timeout=240)
        assert process.returncode == 130
    recording = load_recording(output)
    assert len(recording) >= 250
    assert f"biped14 stood {recording.t[-1]:.3g} s, did not fall" in printed
    np.testing.assert_allclose(recording.t, 1e-3 * np.arange(1, len(recording) + 1), atol=1e-9)
    assert np.isfinite(recording.wrench).all()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"duration                   {len(recording) / 1000:.6g} s" in printed
    end = f"bipedsim run: interrupted at t = {recording.t[-1]:.3f} s; "
    end += f"writing the summary, {output} and {picture} for the time until then\nfigures\n"
    lines = complaint.splitlines(keepends=True)
    said = [line for line in lines if line.startswith(COMPILING)]
    assert len(said) in (0, 2), "begin and end, once for all kernels of a run"
    assert "".join(line for line in lines if line not in said) == end + "bipedsim: interrupted\n"


@pytest.mark.long
def test_ctrl_c_again_ends_at_once_and_says_what_is_missing(tmp_path: Path) -> None:
    """Two signals within a second are one request, because ``timeout -s INT`` sends two at once."""
    output, picture = tmp_path / "run.npz", tmp_path / "run.png"
    code = f"""
import os, signal, sys, time
from matplotlib.backends.backend_agg import FigureCanvasAgg
from bipedsim.cli import main as cli
from bipedsim.runs import runner

def interrupted_at_250(ticks, **_):
    for tick in ticks:
        if tick == 250:
            os.kill(os.getpid(), signal.SIGINT)
        yield tick

def impatient(canvas, path):
    open(path, "w").write("half of a picture")
    try:
        for _ in range(10_000):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        print("never")
    finally:
        print("waited")

made = runner._result
def again(*run):
    os.kill(os.getpid(), signal.SIGINT)
    return made(*run)

runner.ProgressBar, runner._result, FigureCanvasAgg.print_png = interrupted_at_250, again, impatient
sys.exit(cli.main(["run", "--duration", "10", "--output", {str(output)!r}, "--plot", {str(picture)!r}]))
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 130
    assert process.stdout.endswith("waited\n"), process.stderr
    assert "never" not in process.stdout.splitlines(), "a line of its own: the summary has words of its own"
    *_, missing, last = process.stderr.splitlines()
    assert missing == f"bipedsim run: interrupted before all was written: {picture} is missing"
    assert last == "bipedsim: interrupted"
    assert len(load_recording(output)) == 250
    assert not picture.exists(), "no half of one"


def test_ctrl_c_that_a_callback_swallows_is_answered_all_the_same() -> None:
    """Exceptions in callbacks of C code are printed and forgotten, as while kernels are loaded."""
    code = """
import ctypes, sys, time
import bipedsim.cli.commands
from bipedsim.cli import main as cli

def busy(args):
    callback = ctypes.CFUNCTYPE(None)(lambda: (print("up", flush=True), time.sleep(30)))
    callback()
    while True:
        time.sleep(0.01)

class Parser:
    def parse_args(self, argv):
        return type("Args", (), {"function": staticmethod(busy), "command": "busy"})

bipedsim.cli.commands.make_parser = Parser
sys.exit(cli.main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 130
        assert process.stderr.read().endswith("bipedsim: interrupted\n")


def interrupted(busy: str) -> tuple[int, str, str]:
    """Run a command whose function is ``busy`` of this source and interrupts itself; return exit code and output."""
    program = f"""
import os, signal, sys, time
import bipedsim.cli.commands
from bipedsim.cli import main as cli

{busy}
class Parser:
    def parse_args(self, argv):
        return type("Args", (), {{"function": staticmethod(busy), "command": "busy"}})

bipedsim.cli.commands.make_parser = Parser
sys.exit(cli.main())
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return process.returncode, process.stdout, process.stderr


@pytest.mark.long
def test_who_answers_an_interrupt_is_not_interrupted_again() -> None:
    """This holds also while an exception is handled, for example during imports and plots."""
    busy = """
def busy(args):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    except KeyboardInterrupt:
        try:
            {}["nothing"]
        except KeyError:
            time.sleep(3 * cli.REPEAT)
        print("answered", flush=True)
        raise
"""
    assert interrupted(busy) == (130, "answered\n", "bipedsim: interrupted\n")


@pytest.mark.long
def test_who_asks_again_because_nothing_happens_wishes_nothing_new() -> None:
    """Two interrupts, more than a second apart, arrive in destructors that swallow them.

    The handler of the first must not be interrupted.
    """
    busy = """
def busy(args):
    class Deaf:
        def __init__(self, act):
            self.act = act

        def __del__(self):
            self.act()

    try:
        begin = time.monotonic()
        Deaf(lambda: os.kill(os.getpid(), signal.SIGINT))
        while time.monotonic() < begin + 1.2 * cli.SAME_WISH:
            Deaf(lambda: time.sleep(0.05))
        Deaf(lambda: os.kill(os.getpid(), signal.SIGINT))
        time.sleep(30)
    except KeyboardInterrupt:
        time.sleep(3 * cli.REPEAT)
        print("answered", flush=True)
        raise
"""
    assert interrupted(busy) == (130, "answered\n", "bipedsim: interrupted\n")


def test_a_stop_is_followed_by_the_command_that_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--controller", "user_controllers:NotFinite", "--duration", "0.05"]
    assert main(run) == EXIT_FAILED
    assert capsys.readouterr().out.endswith("--output run.npz, then bipedsim view run.npz\n")
    kept = tmp_path / "my run.npz"
    assert main([*run, "--output", str(kept)]) == EXIT_FAILED
    assert capsys.readouterr().out.endswith(f": bipedsim view '{kept}'\n")
    assert main(["run", "--duration", "0.05"]) == 0
    assert "bipedsim view" not in capsys.readouterr().out


def test_a_run_that_diverges_fails_and_keeps_what_came_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, kept = tmp_path / "blown.yaml", tmp_path / "run.npz"
    scenario.write_text("pushes: [{at: 0.02, duration: 0.5, force: [1.0e9, 0.0, 0.0]}]")
    assert main(["run", "--scenario", str(scenario), "--duration", "0.1", "--output", str(kept)]) == EXIT_FAILED
    out, err = capsys.readouterr()
    assert f"wrote {kept}" in out
    assert "error at t = 0.020 s" in err
    assert "bipedsim run: error: simulation diverged at t = 0.020000 s: a velocity" in err
    assert len(load_recording(kept)) == 20


def test_what_ended_a_run_is_told_also_where_nothing_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code and the last error are those of the divergence, not of the full disk."""
    (tmp_path / "full").touch()
    scenario, file = tmp_path / "blown.yaml", tmp_path / "full" / "run.npz"
    scenario.write_text("pushes: [{at: 0.02, duration: 0.5, force: [1.0e9, 0.0, 0.0]}]")
    assert main(["run", "--scenario", str(scenario), "--duration", "0.1", "--output", str(file)]) == EXIT_FAILED
    out, err = capsys.readouterr()
    assert "0.02 s" in out, "the figures of what was simulated"
    lost, ended = err.index(str(file)), err.index("diverged")
    assert lost < ended


def test_figures_of_a_run_that_cannot_be_written_are_printed_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").touch()
    file = tmp_path / "full" / "run.npz"
    assert main(["run", "--duration", "0.05", "--output", str(file)]) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "biped14 stood 0.05 s, did not fall"
    assert err.startswith(f"bipedsim run: error: {file}: cannot be written (")


@pytest.mark.long
def test_a_fall_is_reported_where_the_robot_left_its_stance(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--robot", "talos", "--scenario", "toe_fall", "--duration", "4.5"]) == 0
    assert capsys.readouterr().out.startswith("talos fell at 3.")
    assert summary_of(capsys, "--robot", "talos", "--scenario", "squat", "--duration", "2")["fell_at_s"] is None


def test_a_run_knows_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    assert main(["run", "--scenario", "drop", "--ground", "slope", "--duration", "0.01", "--output", str(path)]) == 0
    about = {"scenario": "drop", "controller": "posture", "contact_model": "one_step", "ground": "slope"}
    assert load_recording(path).about == about


def test_numbers_may_have_an_exponent_without_a_point() -> None:
    assert key_values(["a=1e-3", "b=2E+4", "c=1.5e3", "d=e3"]) == {"a": 1e-3, "b": 2e4, "c": 1500.0, "d": "e3"}


@pytest.mark.parametrize("suffix", [".npy", ".png", ".yaml"])
@pytest.mark.parametrize("scenario", [False, True])
def test_a_ground_can_be_a_file_of_heights(
    suffix: str, scenario: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if suffix == ".npy":
        np.save("h.npy", np.zeros((9, 9)))
    elif suffix == ".png":
        Image.new("L", (9, 9)).save("h.png")
    else:
        Path("h.yaml").write_text("flat: {friction_static: 0.7}\n")
    Path("s.yaml").write_text(f"{{controller: posture, ground: ./h{suffix}}}\n")
    words = ["--scenario", "./s.yaml"] if scenario else ["--ground", f"h{suffix}"]
    assert summary_of(capsys, *words, "--duration", "0.01")["duration_s"] == pytest.approx(0.01)
