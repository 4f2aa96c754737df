"""The report page of a run: its metrics equal those of the summary, it is complete, and it lists omissions."""

from __future__ import annotations

import re
import resource
import shlex
import signal
from html import unescape
from pathlib import Path

import pytest
from refusals import refusal

from bipedsim import RunConfig, load_run, run
from bipedsim.analysis import RunSummary, near_limits, summary_lines
from bipedsim.cli.main import main
from bipedsim.config import to_json
from bipedsim.errors import RecordingError
from bipedsim.recording import Recording
from bipedsim.view import report
from bipedsim.view.html_page import write_page


@pytest.fixture(scope="module")
def stood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a short run."""
    path = tmp_path_factory.mktemp("runs") / "stood up.npz"
    run(RunConfig(scenario="stand", duration=0.3, contact_params={"gamma": 0.2}))[0].save(path)
    return path


def test_figures_are_those_of_the_summary_and_nothing_is_fetched(stood: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(stood), "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    gathered = RunSummary()
    gathered.add(load_run(stood))
    for line in summary_lines(gathered.figures()):
        assert line in unescape(text)
    assert "http" not in re.sub(r"http-equiv", "", re.sub(r"base64,[^\"]*", "", text))
    assert "default-src 'none'" in text
    assert set(re.findall(r"src=\"(\w+):", text)) == {"data"}
    assert re.findall(r"<img alt=\"(\w+)\"", text)[:3] == ["forces", "cop", "modes"]
    assert "joints: no joint was faster" in text
    assert "objects" not in re.sub(r"base64,[^\"]*", "", text), "there were none, and nobody asked for any"
    assert "<td>duration</td><td>0.3 s</td>" in text
    (torque,) = [one for one in near_limits(load_run(stood), joints=1) if one.quantity == "torque"]
    row = f"<td>{torque.of}</td><td>{torque.t:.3f}</td><td>{torque.worst:.4g} N.m</td><td>{torque.limit:.4g} N.m</td>"
    assert row in text
    assert "no foot completed a step" in text
    assert f"bipedsim replay {shlex.quote(str(stood))}" in unescape(text)


@pytest.mark.long
def test_a_report_of_a_stretch_has_the_figures_of_the_stretch(stood: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(stood), "--to", "0.2", "-o", str(out)]) == 0
    text = unescape(out.read_text(encoding="utf-8"))
    gathered = RunSummary(whole=False)
    gathered.add(load_run(stood, stop=0.2))
    said = text.split("<h2>Metrics</h2><pre>")[1].split("</pre>")[0].splitlines()
    assert said == summary_lines(gathered.figures())
    assert gathered.figures()["duration_s"] == pytest.approx(0.2, abs=2e-3)


@pytest.mark.long
def test_the_command_that_repeats_it_makes_the_same_run(stood: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "page.html", tmp_path / "again.npz"
    report(load_run(stood), out, stood)
    found = re.search(r"bipedsim (run .*)", unescape(out.read_text(encoding="utf-8")))
    assert found is not None
    assert main([*shlex.split(found[1]), "--output", str(again)]) == 0
    first, second = load_run(stood), load_run(again)
    assert (first.joint_position == second.joint_position).all()
    assert first.run == second.run


def test_what_a_run_printed_is_read_back(tmp_path: Path) -> None:
    recording, summary = run(RunConfig(scenario="stand", duration=0.2))
    recording.save(tmp_path / "run.npz")
    gathered = RunSummary()
    gathered.add(load_run(tmp_path / "run.npz"))
    again = gathered.figures()
    for key in summary.keys() - {"real_time_factor"}:
        assert to_json(again[key]) == to_json(summary[key]), key


def test_an_empty_recording_is_refused(tmp_path: Path) -> None:
    with refusal(RecordingError, place="the recording"):
        report(Recording.empty(0, ["hip"], ["left"]), tmp_path / "none.html", tmp_path)


@pytest.mark.long
def test_runs_come_beside_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"one": "one_step", "two": "feedback_linearised"}
    for name, model in names.items():
        duration = 0.3 if name == "one" else 0.25
        run(RunConfig(scenario="stand", duration=duration, contact_model=model))[0].save(tmp_path / f"{name}.npz")
    (tmp_path / "two.html").write_text("its moving robot", encoding="utf-8")
    assert main(["report", str(tmp_path / "one.npz"), str(tmp_path / "two.npz")]) == 0
    page = tmp_path / "one_with_two_report.html"
    said = capsys.readouterr().out.splitlines()
    assert f"wrote {page}" in said
    assert sum("lengths differ" in line for line in said) == 1, "once for all panels, those that runs lack too"
    text = unescape(page.read_text(encoding="utf-8"))
    for name, model in names.items():
        gathered = RunSummary()
        gathered.add(load_run(tmp_path / f"{name}.npz"))
        assert f'<td>{name}</td><td class="said">{gathered.figures()["verdict"]}</td>' in text
        assert f"<td>{model}</td>" in text
        assert f"bipedsim replay {tmp_path / name}.npz" in text
    assert "two - one" in text
    assert "penetration_m" in text
    assert re.findall(r"<img alt=\"(\w+)\"", text)[:2] == ["forces", "cop"]
    assert 'two: <a href="two.html">' in text
    assert "one: <a" not in text


def test_runs_of_other_robots_are_refused(stood: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.npz"
    recording = load_run(stood)
    recording.robot = "another"
    recording.save(other)
    assert main(["report", str(stood), str(other), "-o", str(tmp_path / "page.html")]) == 2
    assert "runs of one robot" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.long
def test_report_brings_the_page_that_plays_the_run(stood: Path, tmp_path: Path) -> None:
    pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")
    assert main(["report", str(stood), "-o", str(tmp_path / "sent.html"), "--view"]) == 0
    assert 'href="stood%20up.html"' in (tmp_path / "sent.html").read_text(encoding="utf-8")
    assert "<canvas" in (page := (tmp_path / "stood up.html").read_text(encoding="utf-8")) or "viser" in page


def test_a_full_disk_leaves_the_earlier_page(tmp_path: Path) -> None:
    page, linked = tmp_path / "page.html", tmp_path / "linked.html"
    write_page(page, "first", ["text"])
    first = page.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[0][1]))
    try:
        with refusal(RecordingError, place=page):
            write_page(page, "second", ["text" * 10_000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
    assert page.read_bytes() == first
    assert list(tmp_path.iterdir()) == [page]
    linked.symlink_to(page)
    write_page(linked, "second", ["text"])
    assert linked.is_symlink()
    assert page.read_bytes() != first
