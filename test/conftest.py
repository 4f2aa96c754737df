"""Settings that every test shares."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Kernels load at first use and the machine is shared: nothing is judged by its speed. The same examples run every time.
settings.register_profile("bipedsim", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bipedsim")

STUDIES = Path(__file__).with_name("studies")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what tests studies: ``make test`` leaves it out."""
    for item in items:
        if STUDIES in item.path.parents:
            item.add_marker("studies")


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What runs keep for who looks at them later, nobody does here."""
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
