"""Participants of the ROS graph: by default this machine alone, in the environment of nodes and at their sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from children_support import children_of
from marks import sampled
from ros_domains import APART, Domain
from socket_support import endpoints, is_read, memory_of

from bipedsim.recording.bag import Bag
from bipedsim_ros.wire import network
from bipedsim_ros.wire.domains import STANDARD_BASE
from bipedsim_ros.wire.network import CHOOSING, network_environment, node_environment
from bipedsim_ros.wire.shared_memory import FOLDER

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
OLD, NEW = "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"
WIRE = Path(network.__file__).parent
VIEW = find_spec("viser") is not None
"""Whether the page of the live view can be started."""


def test_this_machine_alone_unless_somebody_says_otherwise() -> None:
    found = network_environment("", {"ROS_DOMAIN_ID": "3"})
    assert found.keys() - {OLD} == {RANGE, NEW}
    assert found.pop(RANGE) == "LOCALHOST"
    assert all(Path(path).is_file() for path in found.values())
    assert network_environment("subnet", {}) == {RANGE: "SUBNET"}


def test_both_profiles_of_fast_dds_say_the_same_of_transports() -> None:
    transports = [
        [ElementTree.canonicalize(ElementTree.tostring(part), strip_text=True) for part in root[0]][:2]
        for root in (ElementTree.parse(path).getroot() for path in sorted(WIRE.glob("this_machine*.xml")))
    ]
    assert len(transports) == 2
    assert transports[0] == transports[1]
    assert all("transport_descriptor" in one[0] and "participant" in one[1] for one in transports)


@pytest.mark.parametrize("end", ["", "_2"])
def test_the_profiles_for_this_and_for_any_machine_differ_in_the_interfaces_alone(end: str) -> None:
    def words(stem: str) -> list[tuple[str, str]]:
        parts = ElementTree.parse(WIRE / f"{stem}{end}.xml").iter()
        return [(one.tag.partition("}")[2], (one.text or "").strip()) for one in parts]

    limited, opened = words("this_machine"), words("any_machine")
    begin = limited.index(("interfaceWhiteList", ""))
    assert limited[begin + 1] == ("address", "127.0.0.1")
    del limited[begin : begin + 2]
    assert [(tag, text.replace("loopback", "udp")) for tag, text in limited] == opened


def test_each_fast_dds_is_told_in_the_variable_that_it_reads(tmp_path: Path) -> None:
    """Fast DDS 3 warns in every process of the name that its version 2 reads."""
    for folder, names in (("fastrtps", {OLD, NEW}), ("fastdds", {NEW})):
        (tmp_path / folder / "share" / folder).mkdir(parents=True)
        env = {"AMENT_PREFIX_PATH": f"{tmp_path}/workspace{os.pathsep}{tmp_path / folder}"}
        assert network_environment("", env).keys() - {RANGE} == names


@pytest.mark.parametrize("name", CHOOSING)
def test_what_the_environment_says_stays(name: str) -> None:
    assert network_environment("", {name: "1"}) == {}
    assert network_environment("", {name: ""}).get(RANGE) == "LOCALHOST", "empty is nothing said"


def test_who_says_what_we_would_gets_the_same() -> None:
    assert network_environment("", {RANGE: "LOCALHOST"}) == network_environment("", {})
    assert network_environment("", {RANGE: "LOCALHOST", "FASTDDS_DEFAULT_PROFILES_FILE": "mine"}) == {}


def test_what_is_given_wins_over_the_environment() -> None:
    assert network_environment("subnet", {RANGE: "OFF"}) == {RANGE: "SUBNET"}
    assert network_environment("subnet", {"ROS_LOCALHOST_ONLY": "1"}) == {RANGE: "SUBNET", "ROS_LOCALHOST_ONLY": "0"}
    for mine in ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTDDS_BUILTIN_TRANSPORTS"):
        assert network_environment("localhost", {mine: "mine"}) == {RANGE: "LOCALHOST"}
    assert network_environment("localhost", {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}) == {RANGE: "LOCALHOST"}


def test_a_node_by_hand_has_the_profile_of_the_network_that_its_user_chose() -> None:
    for env, stem in (({}, "any"), ({RANGE: "SUBNET"}, "any"), ({RANGE: "LOCALHOST"}, "this")):
        paths = node_environment(env)
        assert paths.keys() - {OLD} == {NEW}, "the network stays"
        assert {Path(path).name for path in paths.values()} <= {f"{stem}_machine.xml", f"{stem}_machine_2.xml"}
        assert all(Path(path).is_file() for path in paths.values())
    assert node_environment({RANGE: "LOCALHOST"}) == {
        name: path for name, path in network_environment("localhost", {}).items() if name != RANGE
    }
    for name in {*CHOOSING, "FASTDDS_BUILTIN_TRANSPORTS"} - {RANGE}:
        assert node_environment({name: "1"}) == {}, name
    for range_ in ("OFF", "SYSTEM_DEFAULT"):
        assert node_environment({RANGE: range_}) == {}
    assert node_environment({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}) == {}


STRANGER = """
import os, sys, time
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
import rclpy
rclpy.init()
node = rclpy.create_node("stranger")
end = time.monotonic() + 240.0
while not node.count_publishers("/joint_states") and time.monotonic() < end:
    time.sleep(0.05)
print(node.count_publishers("/joint_states"))
"""


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="only Linux shows the sockets of a process")
@pytest.mark.parametrize(("network", "addresses"), sampled([("", {"127.0.0.1"}), ("SUBNET", {"0.0.0.0"})]))
def test_a_bring_up_listens_where_it_should(tmp_path: Path, network: str, addresses: set[str]) -> None:
    """A node of the same machine with default settings finds it."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    from recorder_support import wait_for

    domain = Domain()
    env = {name: value for name, value in domain.environment().items() if name not in (*APART, *CHOOSING)}
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--controller", "none", *["--view"] * VIEW]
    chosen = {**env, "BROWSER": "true"} | ({"ROS_AUTOMATIC_DISCOVERY_RANGE": network} if network else {})
    with (tmp_path / "up.txt").open("wb") as log:
        up = subprocess.Popen(command, env=chosen, stdout=log, stderr=subprocess.STDOUT)
    try:
        found = subprocess.run([sys.executable, "-c", STRANGER], env=env, capture_output=True, text=True, check=False)
        assert found.stdout.strip() == "1", (tmp_path / "up.txt").read_text() + found.stderr
        wait_for(lambda: not VIEW or "http://" in (tmp_path / "up.txt").read_text(), "the page")
        children = children_of(up.pid)
        ports = range(STANDARD_BASE + 250 * domain.id, STANDARD_BASE + 250 * (domain.id + 1))
        opened = {endpoint for pid in children for endpoint in endpoints(pid)}
        assert {str(endpoint.address) for endpoint in opened if endpoint.port in ports} == addresses
        assert all(endpoint.address.is_loopback for endpoint in opened if endpoint.protocol == "tcp")
        # Fast DDS sends from sockets that are open to all addresses, and reads none of them.
        everywhere = {endpoint.port for endpoint in opened if endpoint.address.is_unspecified}
        assert network or [port for port in everywhere if is_read(port)] == []
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(240.0)
        domain.release()
    told = "the ROS graph is limited to this machine" in (tmp_path / "up.txt").read_text()
    assert told == (not network)


BURST = """
import sys
import time
import rclpy
from geometry_msgs.msg import PointStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
rclpy.init()
qos = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
publisher = rclpy.create_node("burst").create_publisher(PointStamped, "/left_foot/cop", qos)
while not publisher.get_subscription_count():
    pass
print("matched", flush=True)
message = PointStamped()
for line in sys.stdin:
    message.header.stamp.sec, n = (int(word) for word in line.split())
    for _ in range(n):
        publisher.publish(message)
        time.sleep(0.0035)
    print("published", flush=True)
"""


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="not a system with shared memory in files")
def test_a_reader_that_stood_still_for_seconds_loses_nothing_that_a_history_holds(tmp_path: Path) -> None:
    """Fast DDS drops a reader that has been silent for some 2 s.

    It finds the reader again and sends the missing messages.
    """
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    from recorder_support import RecorderProcess, counts_of, ticks_in, wait_for

    domain, n = Domain(), 900
    env = {name: value for name, value in domain.environment().items() if name not in (*APART, *CHOOSING)}
    env |= network_environment("localhost", {})
    try:
        wanted = "topics:=['/left_foot/cop']"
        with RecorderProcess(env, tmp_path / "bag", wanted, ready=False, program=True) as recorder:
            pipe = subprocess.PIPE
            with subprocess.Popen([sys.executable, "-c", BURST], env=env, stdin=pipe, stdout=pipe, text=True) as burst:
                assert burst.stdin is not None
                assert burst.stdout is not None
                assert burst.stdout.readline() == "matched\n"

                def publish(stamp: int, count: int) -> None:
                    print(stamp, count, file=burst.stdin, flush=True)
                    assert burst.stdout is not None
                    assert burst.stdout.readline() == "published\n"

                def recorded(stamp: int) -> int:
                    # The recorder subscribes before its first file has a beginning.
                    if not any(file.stat().st_size for file in tmp_path.glob("bag/*.mcap")):
                        return 0
                    return ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop").count(1000 * stamp)

                def heard() -> bool:
                    publish(0, 1)
                    return recorded(0) > 0

                # The publisher has discovered the recorder. Messages before that may be lost.
                wait_for(heard, "a first message")
                recorder.process.send_signal(signal.SIGSTOP)
                publish(1, n)
                recorder.process.send_signal(signal.SIGCONT)
                with suppress(AssertionError):  # the counters report the losses
                    wait_for(lambda: recorded(1) == n, "all messages")
                _code, out, err = recorder.finish(signal.SIGINT)
                burst.stdin.close()
    finally:
        domain.release()
    assert (recorded(1), counts_of(out.splitlines()[-1])["lost"]) == (n, 0), err


def test_a_dead_reader_is_given_up_within_two_seconds() -> None:
    """Fast DDS looks once a second whether the timeout is over: a second time is one second later only below 1 s."""
    for path in WIRE.glob("*_machine*.xml"):
        found = [int(one.text or "") for one in ElementTree.parse(path).iter() if "healthy_check" in one.tag]
        assert len(found) == 1
        assert 0 < found[0] < 1000


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.skipif(not FOLDER.exists(), reason="not a system with shared memory in files")
@pytest.mark.parametrize("reach", ["", "LOCALHOST"])
def test_a_node_by_hand_has_the_queues_of_one_of_a_launch(tmp_path: Path, reach: str) -> None:
    """The size of a port in shared memory follows from the number of messages in its queue."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    from recorder_support import RecorderProcess

    domain, sizes = Domain(), {}
    by_hand = {name: value for name, value in domain.environment().items() if name not in (*APART, *CHOOSING)}
    by_hand |= {RANGE: reach} if reach else {}
    try:
        for kind, env in {"hand": by_hand, "launch": by_hand | network_environment("localhost", {})}.items():
            wanted = "topics:=['/left_foot/cop']"
            with RecorderProcess(env, tmp_path / kind, wanted, program=True) as recorder:
                assert recorder.first_line
                ports = {name for name in memory_of(recorder.process.pid) if "port" in name}
                sizes[kind] = {(FOLDER / name).stat().st_size for name in ports}
                assert recorder.finish(signal.SIGINT)[0] == 0
    finally:
        domain.release()
    assert sizes["hand"] == sizes["launch"] != set()


COUNTING = """
import itertools
import time
import rclpy
from builtin_interfaces.msg import Time
rclpy.init()
publisher = rclpy.create_node("counting").create_publisher(Time, "/count", 1000)
for number in itertools.count():
    publisher.publish(Time(nanosec=number))
    if not number % 100:
        print(number, flush=True)
    time.sleep(0.01)
"""
COUNTED = """
import rclpy
from builtin_interfaces.msg import Time
rclpy.init()
node = rclpy.create_node("counted")
heard = []
node.create_subscription(Time, "/count", heard.append, 1)
while not node.count_publishers("/count"):
    rclpy.spin_once(node, timeout_sec=0.01)
print("found", flush=True)
while not heard:
    rclpy.spin_once(node, timeout_sec=0.01)
print(heard[0].nanosec, flush=True)
while True:
    rclpy.spin_once(node)
"""
# Fast DDS removes a killed participant after 20 s. A second of the publisher below has 100 messages at most.
LEASE = 2000


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="not a system with shared memory in files")
@pytest.mark.parametrize("ours", sampled([True, False]))
def test_a_reader_that_takes_the_place_of_a_killed_one_hears_soon(ours: bool, tmp_path: Path) -> None:
    """It gets the ports of the dead one; the first was stopped for a while, too, as at a breakpoint."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    domain = Domain()
    plain = {name: value for name, value in domain.environment().items() if name not in (*APART, *CHOOSING)}
    env = plain | network_environment("localhost", {})
    other = env if ours else plain | {RANGE: "LOCALHOST"}

    def start(program: str, env: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True)

    def line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    readers = []
    with start(COUNTING, env) as counting:
        try:
            readers.append(first := start(COUNTED, other))
            assert line(first) == "found"
            assert int(line(first)) >= 0
            first.send_signal(signal.SIGSTOP)
            while int(line(counting)) < 400:
                pass
            first.send_signal(signal.SIGCONT)
            while int(line(counting)) < 500:
                pass
            first.kill()
            first.wait()
            readers.append(second := start(COUNTED, other))
            killed = 500
            assert line(second) == "found"
            assert int(line(second)) < killed + LEASE / 2
        finally:
            for process in (counting, *readers):
                process.kill()
                assert process.stdout is not None
                process.stdout.close()
            domain.release()


ACKNOWLEDGED = """
import rclpy
from geometry_msgs.msg import PointStamped
from rclpy.duration import Duration
rclpy.init()
publisher = rclpy.create_node("soon").create_publisher(PointStamped, "/left_foot/cop", 1000)
while not publisher.get_subscription_count():
    pass
acked = []
while acked[-5:] != [True] * 5 and len(acked) < 60:
    publisher.publish(PointStamped())
    acked.append(publisher.wait_for_all_acked(Duration(seconds=1)))
print(acked[-5:])
"""


def said_beside_a_recorder(tmp_path: Path, program: str) -> list[str]:
    """Return the output of a program that publishes /left_foot/cop while a recorder runs; both have our profile."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    from recorder_support import RecorderProcess

    domain = Domain()
    env = {name: value for name, value in domain.environment().items() if name not in (*APART, *CHOOSING)}
    env |= network_environment("localhost", {})
    try:
        with RecorderProcess(env, tmp_path / "bag", "topics:=['/left_foot/cop']", ready=False, program=True):
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    finally:
        domain.release()
    return done.stdout.split()


@pytest.mark.long
@pytest.mark.ros
def test_what_has_come_is_acknowledged_before_a_history_is_full(tmp_path: Path) -> None:
    """A history holds 1 s of a topic at 1 kHz; by itself Fast DDS asks every 3 s.

    Then a message that follows an acknowledgement waits for 3 s, and two in a row within 1 s each cannot be. A busy
    machine may miss some.
    """
    assert " ".join(said_beside_a_recorder(tmp_path, ACKNOWLEDGED)) == str([True] * 5)


WOKEN = """
import time
from pathlib import Path
import rclpy
from geometry_msgs.msg import PointStamped
rclpy.init()
publisher = rclpy.create_node("woken").create_publisher(PointStamped, "/left_foot/cop", 1000)
while not publisher.get_subscription_count():
    pass
time.sleep(1.0)
def switches():
    threads = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text().startswith("dds.ev")]
    assert threads
    said = [line.split() for task in threads for line in (task / "status").read_text().splitlines()]
    return sum(int(words[1]) for words in said if words[0] == "voluntary_ctxt_switches:")
before = switches()
for _ in range(1000):
    publisher.publish(PointStamped())
    time.sleep(0.001)
print(switches() - before)
"""


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows the threads of a process")
def test_a_message_wakes_those_who_hear_it_and_no_thread_of_its_own(tmp_path: Path) -> None:
    """By default, Fast DDS checks in a thread whether a reliable subscriber has lost a message, right after it is sent.

    That would be at least one wake-up per message. Periodic wake-ups are more frequent where a busy machine takes
    longer for the messages.
    """
    assert int(said_beside_a_recorder(tmp_path, WOKEN)[0]) < 1000 // 2
