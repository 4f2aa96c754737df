"""Settings that every test shares."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key, get_timeout_config_value
from hang import Patience
from hypothesis import HealthCheck, settings
from hypothesis.internal import conjecture

# Kernels are loaded at first use and the machine is shared, so no test may depend on speed. The examples are the same
# in every run.
settings.register_profile("bipedsim", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bipedsim")
# The examples must not depend on the modules that a worker has imported. By default, Hypothesis draws from the literals
# of all modules, so a test could fail once and never again. Versions before 6.131 do not.
providers: Any = getattr(conjecture, "providers", None)
if hasattr(providers, "_get_local_constants"):
    assert not providers._local_constants
    providers._get_local_constants = lambda: providers._local_constants

STUDIES = Path(__file__).with_name("studies")
IN_MAKE_TEST = [STUDIES / "study", STUDIES / "score"]
"""These tests need no extra and run with the others, except the files that are marked as studies."""
ROS = Path(__file__).with_name("ros")
PATIENCE: list[Patience] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ``make test`` leaves out as studies, and distribute the files that wait for nodes.

    Tests of nodes leave cores idle, which other tests use in the meantime. The tests of one file stay together, so that
    they can share fixtures.
    """
    for item in items:
        in_ci = item.path.parent in IN_MAKE_TEST or item.get_closest_marker("ci")
        if STUDIES in item.path.parents and not in_ci:
            item.add_marker("studies")
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    placed = []
    for kind in (True, False):
        group = [tests for tests in files if (ROS in tests[0].path.parents) is kind]
        count, before = sum(map(len, group)), 0
        for tests in group:
            placed.append((before / count, tests))
            before += len(tests)
    placed.sort(key=lambda place: place[0])
    items[:] = [item for _, tests in placed for item in tests]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Prevent a compiling kernel from counting as a hanging test."""
    config = session.config
    PATIENCE[:] = [Patience(get_timeout_config_value(config), config.stash[fault_handler_stderr_fd_key])]


def pytest_runtest_logstart() -> None:
    """Start to watch: only a running test may hang."""
    PATIENCE[0].running = True


def pytest_runtest_logfinish() -> None:
    """Watch no longer."""
    PATIENCE[0].running = False


def pytest_collection() -> None:
    """Disable garbage collection while nearly all objects stay alive."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude imported and collected objects from garbage collection: half a million objects that stay alive."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads the temporary files that a run leaves for later inspection."""
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("kept"))
    tempfile.tempdir = None


@pytest.fixture
def ros_env(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of programs in a ROS domain of the test's own; the test's process is in that domain too."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    import ros_support  # noqa: F401 - prepares this process for nodes
    from ros_domains import Domain

    domain = Domain()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain.id))
    yield domain.environment()
    domain.release()


@pytest.fixture
def ros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A DDS domain of the test's own, with a node in it: a ``ros_support.RosWorld``."""
    from ros_support import new_world

    world = new_world(tmp_path, monkeypatch)
    yield world
    world.close()
