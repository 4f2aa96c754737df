"""Several robots in one ROS graph: each has its own topics, controller and recorder."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refusal

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from paths import LOCK_STEP
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_support import RosWorld

from bipedsim.analysis import load_run
from bipedsim_ros.bringup import plan
from bipedsim_ros.nodes.duplicate_nodes import robots_beside
from bipedsim_ros.wire import topics

UP = [sys.executable, "-m", "bipedsim.cli.main", "up", *LOCK_STEP, "--duration", "0.3"]


@pytest.mark.slow
@pytest.mark.ros
def test_two_robots_in_one_graph_do_not_hear_each_other(ros: RosWorld, tmp_path: Path) -> None:
    robots = {"r1": "biped14", "lab/r2": "parallel_ankles"}
    more = {"r1": ["--controller", "zmp"], "lab/r2": []}
    started = []
    for space, robot in robots.items():
        command = [*UP, "--namespace", space, "--robot", robot, "--record", str(tmp_path / robot), *more[space]]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=ros.env))
    seen: set[str] = set()

    def both() -> bool:
        seen.update(name for name, _ in ros.node.get_topic_names_and_types())
        return {"/r1/joint_states", "/lab/r2/joint_states"} <= seen

    try:
        ros.until(both, "the topics of both robots")
    except pytest.fail.Exception:
        for one in started:
            one.kill()
            print(one.communicate()[0])
        raise
    for one, (space, robot) in zip(started, robots.items(), strict=True):
        said = one.communicate()[0]
        assert one.returncode == 0, said
        assert "another robot" not in said
        run = load_run(tmp_path / robot / "bag")
        assert run.robot == robot
        assert run.t[-1] == pytest.approx(0.3)
        assert bool(run.readouts) == (space == "r1"), "in a bag their topics have the names of a robot that is alone"
        summary = json.loads((tmp_path / robot / "summary.json").read_text())
        assert summary["missed_commands"] == 0
        assert not summary["warnings"]
    alone = {row.name for row in topics.TOPICS.values()} - {"/parameter_events", "/rosout"}
    assert not alone & seen, "nothing is said outside of the namespaces"


@pytest.mark.ros
def test_a_robot_in_another_namespace_is_no_neighbour(ros: RosWorld) -> None:
    other = rclpy.create_node("sim_node", namespace="/r1", context=ros.context, enable_rosout=False)
    same = rclpy.create_node("looks", namespace="/r1", context=ros.context, enable_rosout=False)
    ros.until(lambda: robots_beside(same) == ["sim_node"], "the simulator in this namespace")
    assert robots_beside(ros.node) == []
    other.destroy_node()
    same.destroy_node()


def test_a_namespace_is_that_of_all_nodes(tmp_path: Path) -> None:
    for given in ("r1", "/r1", "/r1/"):
        nodes = plan({"namespace": given, "record": str(tmp_path / "run")}).nodes
        assert [node.namespace for node in nodes] == ["/r1"] * 3
    assert {node.namespace for node in plan({}).nodes} == {""}


@pytest.mark.parametrize("wrong", ["1r", "r 1", "r1//r2", "r-1", "ä"])
def test_what_ros_takes_for_no_namespace_is_refused(wrong: str) -> None:
    with refusal(place="namespace", value=wrong):
        plan({"namespace": wrong})


def test_parameters_that_would_reach_nobody_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("sim_node: {ros__parameters: {seed: 3}}")
    assert plan({"params_file": str(path)}).nodes
    with refusal(place=f"{path}: sim_node"):
        plan({"params_file": str(path), "namespace": "r1"})
    for key in ("/r1/sim_node", "/**/sim_node", "/**"):
        path.write_text(f"{key}: {{ros__parameters: {{seed: 3}}}}")
        assert plan({"params_file": str(path), "namespace": "r1"}).nodes


@pytest.mark.ros
def test_transforms_and_services_are_in_the_namespace(ros: RosWorld) -> None:
    """Frames keep their names, so that headers of messages resolve on /r1/tf. robot_state_publisher gets the same
    frames.
    """
    messages = pytest.importorskip("tf2_msgs.msg", reason="tf2_msgs comes with a ROS 2 installation")
    services = pytest.importorskip("simulation_interfaces.srv", reason="so does simulation_interfaces")
    moving = ros.collect(messages.TFMessage, "/r1/tf")
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    fixed = ros.collect(messages.TFMessage, "/r1/tf_static", latched)
    command = [*UP, "--namespace", "r1", "--robot", "g1", "--duration", "60"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ros.env) as up:
        ros.until(lambda: moving and fixed, "transforms")
        assert moving[-1].transforms[0].header.frame_id == "odom"
        assert moving[-1].transforms[0].child_frame_id == "base_link"
        assert {"pelvis", "l_sole", "r_sole"} <= {one.child_frame_id for one in fixed[-1].transforms}
        client = ros.node.create_client(services.GetEntities, "/r1/get_entities")
        ros.until(client.service_is_ready, "the service")
        future = client.call_async(services.GetEntities.Request())
        ros.until(future.done, "an answer")
        assert future.result().entities == ["g1"]
        names = {name for name, _ in ros.node.get_topic_names_and_types()}
        assert not {"/tf", "/tf_static", "/clock"} & names
        up.send_signal(signal.SIGINT)
