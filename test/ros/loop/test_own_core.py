"""A core for the threads of a loop: the kernel reports the affinity of real threads and processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from refusals import refusal

pytest.importorskip("rclpy")

from bipedsim_ros.loop import ANY, AUTO, OwnCore

if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
    pytest.skip("one core is everybody's, and only Linux says which thread is on which", allow_module_level=True)

CORES = frozenset(os.sched_getaffinity(0))


@pytest.fixture
def claim() -> str:
    """Name the claims of this test, as nodes of other tests have some now."""
    return f"\0bipedsim-test-{os.getpid()}-{threading.get_native_id()}-{time.monotonic_ns()}-{{}}"


@pytest.fixture
def run() -> Iterator[Callable[[Callable[[], object]], object]]:
    """Call something in a thread of its own, so that this one stays where it is."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda work: pool.submit(work).result()


def test_each_takes_one_that_no_other_has_until_there_is_none(claim: str) -> None:
    taken = []

    def take() -> str:
        core = OwnCore(AUTO, claim)
        said = core.take(deadlines=False)
        taken.append(core)
        cores.append(os.sched_getaffinity(0))
        return said

    cores: list[set[int]] = []
    said = []
    for _ in range(len(CORES) + 1):
        with ThreadPoolExecutor(1) as pool:
            said.append(pool.submit(take).result())
    assert {frozenset(one) for one in cores[:-1]} == {frozenset({core}) for core in CORES}
    assert cores[-1] == CORES
    assert said[-1] == "no core of its own: other nodes have taken all"
    assert said[0] == f"on core {min(cores[0])} (cpu_affinity = auto)"
    assert frozenset(os.sched_getaffinity(0)) == CORES
    taken[0].release()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(take).result()
    assert cores[-1] == cores[0]


def test_a_core_is_free_again_when_its_process_was_killed(claim: str) -> None:
    program = (
        "import os, time; from bipedsim_ros.loop import OwnCore; core = OwnCore('auto', {claim!r});"
        "print(core.take(deadlines=False), flush=True); time.sleep(60)"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", program.format(claim=claim)], stdout=subprocess.PIPE, text=True)
        for _ in CORES
    ]
    try:
        for other in others:
            assert other.stdout is not None
            assert "on core" in other.stdout.readline()
        with ThreadPoolExecutor(1) as pool:
            assert "no core" in pool.submit(OwnCore(AUTO, claim).take, False).result()
            others[0].send_signal(signal.SIGKILL)
            others[0].wait()
            assert "on core" in pool.submit(OwnCore(AUTO, claim).take, False).result()
    finally:
        for other in others:
            other.kill()
            other.communicate()


def test_other_threads_stay_free_and_those_that_begin_later_free_all(
    claim: str, run: Callable[[Callable[[], object]], object]
) -> None:
    end = threading.Event()
    before = threading.Thread(target=end.wait)
    before.start()

    def work() -> None:
        with ThreadPoolExecutor(1) as pool:
            others = [OwnCore(AUTO, claim) for _ in range(len(CORES) - 1)]
            assert all("on core" in pool.submit(other.take, False).result() for other in others)
        core = OwnCore(AUTO, claim)
        assert "on core" in core.take(deadlines=False)
        assert before.native_id is not None
        assert os.sched_getaffinity(before.native_id) == CORES
        assert len(os.sched_getaffinity(0)) == 1
        assert not core.let_go_of_others()
        later = threading.Thread(target=end.wait)
        later.start()
        assert later.native_id is not None
        assert len(os.sched_getaffinity(later.native_id)) == 1
        assert "no core of its own any more" in core.let_go_of_others()
        assert os.sched_getaffinity(later.native_id) == os.sched_getaffinity(0) == CORES
        assert not core.let_go_of_others()
        # The next process can now take the core, and no process could before.
        assert "on core" in OwnCore(AUTO, claim).take(deadlines=False)
        end.set()
        later.join()

    try:
        run(work)
    finally:
        end.set()
        before.join()


def test_threads_that_bring_messages_come_along(claim: str, run: Callable[[Callable[[], object]], object]) -> None:
    end, named = threading.Event(), threading.Event()

    def wait() -> None:
        # As those of the middleware are called.
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("dds.shm.7411")
        named.set()
        end.wait()

    brings = threading.Thread(target=wait)
    brings.start()

    def work() -> None:
        named.wait()
        OwnCore(AUTO, claim).take(deadlines=False)
        assert brings.native_id is not None
        assert os.sched_getaffinity(brings.native_id) == os.sched_getaffinity(0) != CORES

    try:
        run(work)
    finally:
        end.set()
        brings.join()


def test_the_core_on_which_a_thread_runs_already_is_preferred(
    claim: str, run: Callable[[Callable[[], object]], object]
) -> None:
    def work() -> None:
        for core in CORES:
            os.sched_setaffinity(0, CORES)
            own = OwnCore(AUTO, claim)
            os.sched_setaffinity(0, {core})
            assert own.take(deadlines=False) == f"on core {core} (cpu_affinity = auto)"
            own.release()

    run(work)


def test_who_has_deadlines_and_no_priority_takes_none(
    claim: str, run: Callable[[Callable[[], object]], object]
) -> None:
    assert os.sched_getscheduler(0) != os.SCHED_FIFO
    assert run(lambda: OwnCore(AUTO, claim).take(deadlines=True)) == ""
    assert run(lambda: os.sched_getaffinity(0)) == CORES
    assert run(lambda: OwnCore(ANY, claim).take(deadlines=False)) == ""
    assert run(lambda: os.sched_getaffinity(0)) == CORES


def test_named_cores_are_taken_whoever_has_them(claim: str, run: Callable[[Callable[[], object]], object]) -> None:
    one = max(CORES)
    core = OwnCore(str(one), claim)
    assert run(lambda: core.take(deadlines=True)) == f"on core {one} (cpu_affinity = {one})"
    assert run(lambda: os.sched_getaffinity(0)) == {one}
    end = threading.Event()
    later = threading.Thread(target=end.wait)
    later.start()
    # The affinity that the user sets stays in effect.
    assert run(core.let_go_of_others) == ""
    end.set()
    later.join()
    all_of_them = ", ".join(map(str, sorted(CORES)))
    every = OwnCore(all_of_them, claim)
    said = run(lambda: every.take(deadlines=True))
    assert said == f"on cores {all_of_them} (cpu_affinity = {all_of_them})"
    assert run(lambda: os.sched_getaffinity(0)) == CORES


@pytest.mark.parametrize("text", ["", "x", "-1", "1-2", "1,", "auto,1"])
def test_what_names_no_core_is_refused_with_what_does(text: str) -> None:
    with refusal(place="cpu_affinity", value=text):
        OwnCore(text)


def test_a_core_that_is_not_there_is_refused_by_name() -> None:
    with refusal(place="cpu_affinity", value="9999"):
        OwnCore("9999")
