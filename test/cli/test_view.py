"""``bipedsim view``: a page until Ctrl-C, a file, and error messages."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
import webbrowser
from functools import partial
from pathlib import Path

import pytest
from socket_support import endpoints

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from bipedsim.cli.main import main
from bipedsim.config import RunConfig
from bipedsim.runs import run
from bipedsim.view import page
from bipedsim.view.page import Replay, RunView


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "stand.npz"
    recording, _ = run(RunConfig(duration=0.5))
    recording.save(path)
    return path


@pytest.mark.long
def test_a_page_is_served_to_this_machine_until_it_is_interrupted(walk: Path) -> None:
    command = [sys.executable, "-m", "bipedsim.cli.main", "view", str(walk), "--port", "0"]
    env = {**os.environ, "BROWSER": "true"}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        line = program.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line
        assert line.startswith("biped14")
        # The proxy of the environment is not used.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(found[0], timeout=240) as answer:
            assert b"<html" in answer.read()
        opened = endpoints(program.pid)
        assert ("tcp", int(found[0].rpartition(":")[2])) in {(one.protocol, one.port) for one in opened}
        assert all(endpoint.address.is_loopback for endpoint in opened)
        os.kill(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=240)
    assert program.returncode == 0, err
    assert line.endswith("(waits for a browser, then plays; Ctrl-C ends)\n")
    assert out.strip() == ""
    assert err == ""


@pytest.mark.parametrize(
    "words", [["view", "{run}", "--port", "0"], ["run", "--duration", "0.05", "--view"]], ids=lambda words: words[0]
)
def test_a_browser_is_opened(
    walk: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def end(_replay: Replay) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(Replay, "run", end)
    monkeypatch.setattr(page, "RunView", partial(RunView, patience=0.0))
    assert main([word.replace("{run}", str(walk)) for word in words]) == 0
    printed = capsys.readouterr()
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+", printed.out + printed.err)
    assert opened == [address]


def test_a_file_is_written(walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep" / "stand.html"
    assert main(["view", str(walk), "--from", "0.2", "--html", str(path)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"wrote .*stand\.html: \d+ frames, 30 a second; 1700 triangles.*; 0\.\d MB", said)
    text = path.read_text(encoding="utf-8")
    assert "__VISER_EMBED_DATA__" in text
    assert "biped14" in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.npz"], "nowhere.npz: "),
        (["{run}", "--html", "walk.gif"], "ends in .html"),
        (["{run}", "--port", "99999"], "port = 99999 is above its maximum 65535"),
        (["{run}", "--port", "-3"], "port = -3 is below its minimum 0"),
        (["{run}", "--from", "7"], "the run lasts from"),
        (["{run}", "--robot", "compass"], "has no joint of this robot"),
        (["{run}", "--ground", "moon"], "moon"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    walk: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", *(word.replace("{run}", str(walk)) for word in words)]) != 0
    assert said in capsys.readouterr().err


def test_without_viser_the_way_to_it_is_said(
    walk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["view", str(walk)]) != 0
    assert "pip install 'bipedsim[view]'" in capsys.readouterr().err
