"""sim_node with every contact model: a controller stands over DDS, a recorder listens, parameters are those of ROS."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from paths import ROOT
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_support import RosWorld
from std_msgs.msg import String

from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.contact.modes import face_mode, mode_name
from bipedsim.model import load_robot
from bipedsim.recording import load_recording
from bipedsim.sim.simulator import Simulator

pytestmark = pytest.mark.ros

ROBOT = load_robot("biped14")
LATCHED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


# The others go the same way through the node.
QUICK = ("one_step",)


@pytest.fixture(
    params=[pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in CONTACT_MODELS]
)
def model(request: pytest.FixtureRequest) -> str:
    """A contact model with compiled kernels, so that the test does not wait for a node that compiles."""
    Simulator(ROBOT, contact=request.param).warm_up()
    return str(request.param)


@pytest.mark.long
def test_a_controller_stands_and_is_recorded(ros: RosWorld, model: str) -> None:
    """One second in lock step: no missed command, no lost tick, and all contact statistics are valid."""
    stats, bag = ros.folder / "stats.json", ros.folder / "bag"
    modes = [ros.collect(String, f"/{sole.name}_foot/contact_mode", LATCHED) for sole in ROBOT.soles]
    recorder = ros.start("recorder_node", output=str(bag), robot="biped14")
    ros.until(lambda: "recording" in recorder.output, "the recorder being ready")
    sim = ros.start(
        "sim_node",
        contact_model=model,
        clock="lock_step",
        duration=1.0,
        wait_for_recorder=True,
        stats_file=str(stats),
    )
    ros.start("controller_node", wait_for_listeners=2)
    assert ros.ended(sim) == 0, sim.output
    assert recorder.stop() == 0, recorder.output
    assert f"contact {model}" in sim.output

    counted = json.loads(stats.read_text())
    assert counted["contact_model"] == model
    assert counted["ticks"] == 1000
    assert (counted["verdict"], counted["fell_at_s"], counted["steps"]) == ("stood 1 s, did not fall", None, 0)
    assert not any(figure["steps_beyond"] for figure in counted["physics"].values())
    for name in ("missed_commands", "commands_dropped", "command_timeouts", "unresolved_steps"):
        assert counted[name] == 0, name

    recording = load_recording(bag)
    assert [round(t * 1000) for t in recording.t if t > 0.0] == list(range(1, 1001)), "every tick, from the first one"
    n = ROBOT.soles[0].n_vertices
    stood = recording.t > 0.5
    assert recording.wrench[stood, :, 2].sum(axis=1).mean() == pytest.approx(ROBOT.weight, rel=1e-3)
    assert np.abs(recording.base_pose[-1] - recording.base_pose[0]).max() < 1e-3
    assert (recording.mode[stood] == face_mode(n)).all()
    assert (recording.clamped[stood] == 2**n - 1).all()
    assert (recording.n_vertices[stood] == n).all()
    assert not recording.sliding[stood].any()
    assert (recording.friction_used[stood] >= 0.0).all()
    assert (recording.friction_used[stood] < 1.0).all()
    assert (recording.cop_margin[stood] > 0.0).all()
    assert (recording.impact[stood] == 0.0).all()
    words = {mode_name(mode, sliding, n) for mode in range(face_mode(n) + 1) for sliding in (False, True)}
    for heard in modes:
        assert {message.data for message in heard} <= words
        assert heard[-1].data == "face stick"


@pytest.mark.long
def test_parameters_of_the_model_are_those_of_its_dataclass(ros: RosWorld, model: str) -> None:
    params = CONTACT_MODELS[model].Params
    fields = {field.name: field for field in dataclasses.fields(params)}
    ros.start("sim_node", contact_model=model)
    listed = ros.call(ListParameters, "/sim_node/list_parameters", prefixes=list(CONTACT_MODELS)).result.names
    names = [f"{model}.{name}" for name in fields]
    assert set(listed) == set(names), "and those of no other model"
    values = ros.call(GetParameters, "/sim_node/get_parameters", names=names).values
    described = ros.call(DescribeParameters, "/sim_node/describe_parameters", names=names).descriptors
    for value, descriptor, field in zip(values, described, fields.values(), strict=True):
        by_type = {2: value.integer_value, 3: value.double_value, 4: value.string_value}
        assert by_type[value.type] == field.default
        assert field.metadata["doc"] in descriptor.description
        assert descriptor.read_only


@pytest.mark.long
def test_a_file_may_hold_the_parameters_of_every_model(ros: RosWorld) -> None:
    """config/sim.yaml is given as it is, and the switch alone is turned; other models' parameters are checked, too."""
    written = yaml.safe_load((ROOT / "config" / "sim.yaml").read_text(encoding="utf-8"))
    parameters = written["sim_node"]["ros__parameters"]
    parameters |= {"contact_model": "lcp", "start": "immediately", "clock": "as_fast_as_possible", "duration": 0.05}
    sim = ros.start("sim_node", **parameters)
    assert ros.ended(sim) == 0, sim.output
    assert "what is given for one_step, exact" in sim.output
    wrong = ros.start("sim_node", contact_model="lcp", **{"exact.candidates": 0})
    assert wrong.wait() == 2
    assert "candidates = 0 is below its minimum" in wrong.output


# Fifty physics steps in 50 us: a microsecond for each is out of reach of every machine.
TOO_FAST = {"rate": 20_000.0, "physics_dt": 1e-6}


def test_a_rate_that_no_machine_keeps_is_refused_at_the_start(ros: RosWorld) -> None:
    sim = ros.start("sim_node", **TOO_FAST)
    assert sim.wait() == 2
    assert "Traceback" not in sim.output
    for part in ("'one_step'", "'biped14'", "has 50 us", "clock:=lock_step", "rate:=", "`rate_check: warn`"):
        assert part in sim.output, part


@pytest.mark.long
@pytest.mark.parametrize(
    ("told", "warned"),
    [({"rate_check": "warn"}, True), ({"rate_check": "off"}, False), ({"clock": "as_fast_as_possible"}, False)],
)
def test_the_check_of_the_rate_can_be_told_to_let_it_pass(ros: RosWorld, told: dict[str, str], warned: bool) -> None:
    sim = ros.start("sim_node", start="immediately", duration=0.001, **TOO_FAST, **told)
    assert ros.ended(sim) == 0, sim.output
    assert ("cannot" in sim.output or "of which it may take" in sim.output) == warned
