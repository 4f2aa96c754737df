"""Simulate a robot behind the topics of a real one (``sim_node``, docs/ros_interface.md)."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from bipedsim.config import differences
from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import EXIT_FAILED, ConfigError, either
from bipedsim.ground import get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, announced
from bipedsim.objects import parse_objects
from bipedsim.plates import parse_plates
from bipedsim.runs import FaultSchedule, Rollout, compiling_beside, parse_pushes, read_faults
from bipedsim.sim import GANTRY_ACTIONS, Simulator, VertexForces, read_gantry, scan_grid
from bipedsim_ros.loop import (
    Background,
    Commands,
    DriveParams,
    Drops,
    Inbox,
    OwnCore,
    Publishers,
    SimLoop,
    SimParams,
    Statistics,
    judge,
    measure,
    real_time_priority,
    run_urgently,
    write_json,
)
from bipedsim_ros.nodes.duplicate_nodes import duplicate_nodes
from bipedsim_ros.nodes.effort_controller import declare_joints, make_effort_controller
from bipedsim_ros.nodes.node_main import NodeProgram, run_node
from bipedsim_ros.nodes.parameters import Parameters
from bipedsim_ros.nodes.request_services import offer_requests
from bipedsim_ros.nodes.simulation_services import offer
from bipedsim_ros.nodes.trajectory_action import offer_trajectory_action
from bipedsim_ros.wire import (
    BASE_FRAME,
    Departures,
    MessageError,
    TransformsWatch,
    controlled_urdf,
    parse,
    publisher,
    relative,
    requested,
    topics,
)

# Time for which the node waits at its end for slow subscribers [s]; the second value holds in lock step.
_DRAIN_S = (3.0, 30.0)


def _points(grid: Sequence[float]) -> Array | None:
    """Return the points of a height scan [m] from its length, width and resolution; None without them."""
    return scan_grid((grid[0], grid[1]), grid[2], True) if grid[2] > 0.0 else None


class SimNode(NodeProgram):
    """Simulator node with topics, services and parameters; :meth:`run` contains the loop.

    Raises:
        ConfigError: A parameter is invalid.
    """

    def __init__(self) -> None:
        super().__init__("sim_node")
        node, parameters = self._node, self._parameters
        self._params = parameters.declare(SimParams, listener=self._on_change)
        params = self._params
        contact = self._contact_params(parameters)
        robot = load_robot(params.robot)
        self._drives = self._drive_params(parameters, robot)
        parameters.refuse_unknown()
        declare_joints(node, robot)
        ground = get_ground(params.ground)
        for warning in (*robot.warnings, *robot.shapes.left_out):
            node.get_logger().warning(str(warning))
        objects = parse_objects(params.objects)
        gantry = read_gantry(params.gantry)
        plates = parse_plates(params.force_plates)
        bodies = {*(body.name for body in objects), *(frame.name for frame in robot.model.frames)}
        pushes = parse_pushes(params.pushes, sorted(bodies))
        faults = FaultSchedule(read_faults(params.faults), robot, 1.0 / params.rate, params.seed)
        compiled = f"the simulation of {robot.name}, as `bipedsim warmup` does ahead of time"
        with compiling_beside(params.contact_model), announced(compiled, 10, at_first=60):
            sim = Simulator(
                robot,
                ground,
                contact=params.contact_model,
                physics_dt=params.physics_dt,
                control_dt=1.0 / params.rate,
                contact_params=contact,
                hardware=params.hardware,
                seed=params.seed,
                objects=objects,
                gantry=gantry,
                force_plates=plates,
                height_scan=_points(params.height_scan),
            )
            # The kernels themselves report if they must be compiled first.
            node.get_logger().info(f"loading the kernels of {params.contact_model}")
            sim.warm_up(loops=True)
            self._check_rate(sim)
            self._statistics = Statistics(robot.name, params.contact_model, params.clock, params.rate, params.start)
            self._statistics.faults = tuple(map(str, faults.faults))
            for fault in self._statistics.faults:
                node.get_logger().warning(f"fails on purpose: {fault}")
            self._commands = Commands(robot, params, node.get_logger().warning, gains=self._drives)
            kinds = (node.resolve_topic_name(relative(kind.name)) for kind in self._commands.kinds)
            self._statistics.command_topics = tuple(kinds)
            vertices = VertexForces(sim) if params.vertex_forces else None
            if vertices is not None and vertices.lacking:
                raise ConfigError(f"parameters of sim_node: vertex_forces = true: {vertices.lacking}")
            patient = self._waits_for if params.clock == "lock_step" else None
            # A controller manager takes its joints from /robot_description, and from nowhere else.
            urdf = controlled_urdf(robot) if params.command_interface == "topic_based" else ""
            self._publishers = Publishers(node, sim, params.ft_sign, params.tf_rate, patient, vertices, urdf)
            self._diagnostics = publisher(node, topics.DIAGNOSTICS)
            self._inbox = inbox = Inbox(node, *self._commands.kinds)
            # Only lock step waits for subscribers of all topics. In real time there is no time to check all of them.
            awaited = () if patient is None else self._publishers.names
            always = (topics.JOINT_STATES, *self._commands.kinds)
            self._departures = Departures(node, (*(relative(topic.name) for topic in always), *awaited))
            error = node.get_logger().error
            rollout = Rollout(sim, pushes, faults, error, on_event=self._publishers.publish_run)
            ends = self._commands, self._publishers, self._statistics
            self.loop = SimLoop(rollout, params, inbox, *ends, error)
        wanted = params.tf_rate > 0.0 and robot.free_flyer
        self._transforms = TransformsWatch(node) if wanted else None
        self._logged_wait = ""
        self._unwritten = False
        self._faults = Drops(node.get_logger().error)
        self._pushes = Drops(lambda text: node.get_logger().warning(f"message on {topics.PUSH.name} dropped: {text}"))
        self._push_frames = {BASE_FRAME: "", **{name: name for name in sorted(bodies)}}
        # The messages are received as bytes, because rclpy would silently discard an unreadable message.
        push = relative(topics.PUSH.name)
        node.create_subscription(WrenchStamped, push, self._on_push, requested(topics.PUSH), raw=True)
        node.create_service(Trigger, topics.RESET, self._service(self.loop.reset))
        node.create_service(Trigger, topics.STEP, self._service(self.loop.single_step))
        node.create_service(SetBool, topics.PAUSE, self._on_pause)
        for action in GANTRY_ACTIONS if sim.gantry is not None else ():
            name = topics.GANTRY_ACTION.format(action=action)
            node.create_service(Trigger, name, self._service(partial(self.loop.hang, action)))
        offer_requests(node, self.loop)
        self._standard_services = offer(node, sim, self.loop)
        follows = topics.TRAJECTORY in self._commands.kinds
        self._trajectory_action = offer_trajectory_action(node, robot, self.loop) if follows else None
        # A controller manager has its own effort controller.
        own = [] if params.command_interface == "topic_based" else [make_effort_controller(node, robot)]
        self._background = Background(node, *own)
        self._effort_controllers = own
        self._core = OwnCore(params.cpu_affinity)
        node.get_logger().info(
            f"{robot.name} ({robot.mass:.1f} kg, {robot.nu} joints), contact {params.contact_model}, "
            f"{params.rate:g} Hz {params.clock}, physics step {params.physics_dt:g} s, "
            f"hardware {params.hardware}, seed {params.seed}"
        )

    def run(self) -> int:
        """Simulate until the end of the duration or :meth:`stop`; return the exit code."""
        # Without deadlines the loop never sleeps, so that real-time priority would block all other programs.
        urgent = self._params.clock == "real_time" and self._params.priority > 0
        notes = [run_urgently(self._params.priority)] if urgent else []
        self._statistics.real_time_priority = real_time_priority()
        self._background.start()
        notes.append(self._core.take(deadlines=self._params.clock == "real_time"))
        if message := "; ".join(filter(None, notes)):
            self._node.get_logger().info(message)
        # All present objects live until the end, so the garbage collector need not visit them every few ticks.
        gc.collect()
        gc.freeze()
        try:
            self.loop.run(self._each_second)
        finally:
            if self._trajectory_action is not None:
                self._trajectory_action.send_results()
            self._background.stop()
            self._report()
            patience = _DRAIN_S[self._params.clock == "lock_step"]
            if not self._publishers.drain(patience, self._departures.look):
                self._node.get_logger().error(
                    "a subscriber had not taken all when the simulation ended: a recorder's bag would lack the end"
                )
        return EXIT_FAILED if self._unwritten else self.loop.exit_code

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler."""
        self.loop.stop()

    def destroy_node(self) -> None:
        """Destroy the ROS node."""
        if self._standard_services is not None:
            self._standard_services.destroy()
        if self._trajectory_action is not None:
            self._trajectory_action.destroy()
        self._departures.close()
        for controller in self._effort_controllers:
            controller.destroy_node()
        super().destroy_node()

    def _contact_params(self, parameters: Parameters) -> dict[str, Any]:
        """Declare the parameters of the contact model and return them.

        A file may contain parameters of several models. All of them are checked, whichever model is used.
        """
        used = self._params.contact_model
        others = [name for name in CONTACT_MODELS if name != used and parameters.given(f"{name}.")]
        for name in others:
            parameters.declare(CONTACT_MODELS[name].Params, prefix=f"{name}.")
        if others:
            text = f"contact_model is {used}: what is given for {', '.join(others)} has no effect"
            self._node.get_logger().info(text)
        return dataclasses.asdict(parameters.declare(CONTACT_MODELS[used].Params, prefix=f"{used}."))

    def _drive_params(self, parameters: Parameters, robot: Robot) -> DriveParams:
        """Declare the gains of the drives of all joints and return them."""
        defaults = vars(DriveParams.of_robot(robot, self._params.physics_dt))
        drives = parameters.declare(DriveParams, defaults=defaults, listener=self._on_drives)
        drives.refuse_unknown(robot, "parameters of sim_node")
        return drives

    def _check_rate(self, sim: Simulator) -> None:
        """Refuse a real-time rate that the step cannot sustain, or only warn, depending on ``rate_check``."""
        params = self._params
        if params.clock != "real_time" or params.rate_check == "off":
            return
        cost = measure(sim)
        if cost is None:
            return
        self._node.get_logger().info(f"a step takes {1e6 * cost.tick:.0f} us, {cost.tick * params.rate:.1%} of a tick")
        try:
            warning = judge(cost, params.contact_model, sim.robot.name, params.rate, params.real_time_factor)
        except ConfigError as error:
            if params.rate_check == "refuse":
                raise
            warning = str(error)
        if warning:
            self._node.get_logger().warning(warning)

    def _each_second(self) -> None:
        # The report sends messages and writes a file, which would take a tick or two of the loop.
        self._background.submit(self._check_and_report)

    def _check_and_report(self) -> None:
        died = self._departures.look()
        self._log_wait()
        if self._transforms is not None and (warning := self._transforms.look()):
            self._node.get_logger().info(warning)
        # A controller that was killed just now may still be in the graph, together with its successor.
        if not (died or self._statistics.warnings):
            self._check_duplicates()
        self._report()

    def _report(self) -> None:
        """Publish the statistics, and write them to the statistics file if there is one."""
        self._statistics.pushes_dropped_by_kind = dict(self._pushes.by_kind)
        if self._diagnostics.get_subscription_count():
            self._diagnostics.publish(self._statistics.diagnostics(self._node.get_clock().now().to_msg()))
        if not self._params.stats_file:
            return
        path = Path(self._params.stats_file)
        try:
            write_json(path, self._statistics.as_dict())
        except OSError as error:
            self._faults.add("stats_file", f"stats_file = {str(path)!r} cannot be written: {error.strerror or error}")
            self._unwritten = True
        else:
            self._unwritten = False

    def _log_wait(self) -> None:
        """Log why no node publishes commands, although the simulation waits for a first command."""
        waits = self._statistics.state == "waiting" and self._params.start == "wait_for_command"
        waits = waits and not self._inbox.publishers()
        reason = _waited_for(self._node) if waits else ""
        if reason not in ("", self._logged_wait):
            listed = either(self._statistics.command_topics)
            self._node.get_logger().info(f"t = 0 is held until the first command on {listed}: {reason}")
        self._logged_wait = reason

    def _check_duplicates(self) -> None:
        """Warn once of another robot on the same topics, or of a second controller."""
        names = (topics.JOINT_STATES.name, *(topic.name for topic in self._commands.kinds))
        duplicates = duplicate_nodes(self._node, names)
        if duplicates and not self._statistics.warnings:
            self._statistics.warnings = (duplicates,)
            self._node.get_logger().error(duplicates)

    def _waits_for(self, topic: str) -> bool:
        """Return whether to continue waiting for a slow subscriber of ``topic``; only lock step waits.

        The wait ends when the node stops.
        """
        if self._departures.look():
            return True
        self._node.get_logger().warning(
            f"waiting for a subscriber of {topic} that does not take what was published: the recorder, or another that "
            "asks for reliable delivery; stop it, or let it ask for best effort, if it need not have all",
            throttle_duration_sec=5.0,
            skip_first=True,
        )
        return not self.loop.stopped

    def _on_change(self, params: SimParams) -> None:
        self._params = params
        self._commands.configure(params)
        self.loop.keep_pace(params.real_time_factor)

    def _on_drives(self, drives: DriveParams) -> None:
        gains, self._drives = differences(self._drives, drives), drives
        if gains:
            self.loop.requests.post(lambda: self.loop.tune_drives(gains), self._node.get_logger().error)

    def _on_push(self, data: bytes) -> None:
        try:
            message = parse(data, WrenchStamped)
        except MessageError as error:
            self._pushes.add("unreadable", str(error))
            return
        frame = message.header.frame_id or BASE_FRAME
        force, torque = message.wrench.force, message.wrench.torque
        wrench = np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])
        if frame not in self._push_frames:
            known = ", ".join(self._push_frames)
            self._pushes.add("frame", f"there is no frame or object {frame!r}; there are {known}")
            return
        if not np.isfinite(wrench).all():
            self._pushes.add("not_finite", "it is not finite")
            return
        body, duration = self._push_frames[frame], self._params.push_timeout
        self.loop.requests.post(lambda: self.loop.push(wrench, body, duration), partial(self._pushes.add, "refused"))

    def _service(self, action: Callable[[], str]) -> Callable[[Any, Any], Any]:
        def serve(_request: Any, response: Any) -> Any:
            response.success, response.message = self.loop.requests.ask(action)
            return response

        return serve

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        action = self.loop.pause if request.data else self.loop.resume
        response.success, response.message = self.loop.requests.ask(action)
        return response


def _waited_for(node: Node) -> str:
    """Return why no node publishes commands: a controller still starts, or there is none."""
    if ("controller_node", node.get_namespace()) in node.get_node_names_and_namespaces():
        return "controller_node is still starting; it compiles the kernels of its controller at its first start"
    return "no controller publishes yet. It may still be starting; otherwise start one, such as bipedsim control"


def main(args: Sequence[str] | None = None) -> int:
    """Run sim_node; return 0, 1 after a failure, or 2 after bad parameters."""
    return run_node(SimNode, args)


if __name__ == "__main__":
    sys.exit(main())
