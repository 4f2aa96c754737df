"""Bridge a robot on ROS topics to rt/lowstate and rt/lowcmd, for Unitree's own programs (``unitree_node``).

The measurements of the robot are published as rt/lowstate. Commands on rt/lowcmd become joint impedances, which the
drives hold. The simulator is independent of this bridge.

On the machine, a program begins with free joints in a gantry. In a simulation without a gantry, simulated time is held
instead. Before the start, commands without stiffness, damping and torque are received but not passed on, and the node
repeats rt/lowstate by the wall clock.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Twist
from std_msgs.msg import String
from std_srvs.srv import Trigger

from bipedsim.control.policy import pairs_along
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.recording.bag import NS_PER_S
from bipedsim.sim import GANTRY_ACTIONS, Observation
from bipedsim_ros.interfaces.unitree.dds import COMMAND, LIBRARY, STATE, Bus
from bipedsim_ros.interfaces.unitree.low_commands import LowCommands
from bipedsim_ros.interfaces.unitree.low_state import LowStateWriter
from bipedsim_ros.interfaces.unitree.machine import machine_for, misplaced_imu
from bipedsim_ros.interfaces.unitree.params import UnitreeParams
from bipedsim_ros.interfaces.unitree.remote import RemoteControl, read_script
from bipedsim_ros.interfaces.unitree.switcher import Switcher
from bipedsim_ros.loop import Background, Drops, Inbox, publish_status, run_urgently, sleep_on_time
from bipedsim_ros.nodes import NodeProgram, run_node
from bipedsim_ros.wire import (
    ImpedanceWriter,
    ImuReader,
    JointStateReader,
    MessageError,
    WrenchReader,
    publisher,
    relative,
    requested,
    topics,
)

_REPORT_NS = NS_PER_S
# Time without a program on rt/lowcmd after which a hint is logged [s].
_PATIENCE_S = 15.0


class UnitreeNode(NodeProgram):
    """Bridges one robot.

    Raises:
        ConfigError: A parameter is invalid, the robot is not one of the vendor's machines, or DDS is not available.
    """

    def __init__(self) -> None:
        super().__init__("unitree_node")
        node, parameters = self._node, self._parameters
        self._params = params = parameters.declare(UnitreeParams)
        parameters.refuse_unknown()
        robot = load_robot(params.robot)
        self._machine = machine = machine_for(robot.joint_names, pairs_along(robot))
        self._script = list(read_script(params.remote))
        self._remote = RemoteControl()
        self._lock = threading.Lock()
        log = node.get_logger()
        self._drops = Drops(lambda text: log.warning(f"message on {COMMAND} dropped: {text}"))
        self._inputs = Drops(log.warning)
        self._commands, self._impedances = LowCommands(machine), ImpedanceWriter(robot.nu)
        self._publisher = publisher(node, topics.IMPEDANCE)
        self._remote_publisher = publisher(node, topics.REMOTE)
        self._inbox = Inbox(node, topics.JOINT_STATES)
        self._imu = self._inbox.subscribe(topics.IMU)
        feet = robot.soles if "foot_force" in (machine.family.low_state.names or ()) else ()
        self._feet = [self._inbox.subscribe(topics.ANKLE_WRENCH, sole.name) for sole in feet]
        words, velocities = topics.REMOTE, topics.VELOCITY
        node.create_subscription(String, relative(words.name), self._on_remote, requested(words))
        node.create_subscription(Twist, relative(velocities.name), self._on_velocity, requested(velocities))
        self._gantry = {
            action: node.create_client(Trigger, topics.GANTRY_ACTION.format(action=action).replace("~", "sim_node"))
            for action in (GANTRY_ACTIONS if params.gantry else ())
        }
        self._diagnostics = publisher(node, topics.DIAGNOSTICS)
        self._joints_reader, self._imu_reader = JointStateReader(robot.joint_names), ImuReader()
        self._foot_reader = WrenchReader()
        self._observation = Observation.zeros(robot.nu, len(self._feet))
        self._low_state = LowStateWriter(machine)
        self._period_ns = round(NS_PER_S / params.state_rate)
        self._begin_ns = self._stamp_ns = -1
        self._tick_ns = 0
        self._sent = self._received = 0
        self._first_command_at = 0.0
        self._pressed: Array | None = None
        self._begun = self._logged_free = self._logged_nobody = self._logged_robots = False
        self._logged_strangers: set[str] = set()
        self._misfits, self._logged_misfits = 0, False
        nic = params.nic or ("" if params.network == "subnet" else "lo")
        self._bus = Bus(params.domain, machine.family.name, nic, self._on_command, self._failed, Switcher())
        missing = f"; motors without a joint report 0: {', '.join(machine.missing)}" if machine.missing else ""
        if misplaced := misplaced_imu(machine, robot):
            log.warning(misplaced)
        log.info(
            f"{STATE} and {COMMAND} of {machine.name} on DDS domain {params.domain}, network interface {nic or 'any'}, "
            f"by {LIBRARY}: programs need the same version of it{missing}"
        )

    def run(self) -> int:
        """Publish states until :meth:`stop`; return the exit code."""
        sleep_on_time()
        background = Background(self._node)
        background.start()
        self._bus.start()
        if self._params.priority:
            self._node.get_logger().info(run_urgently(self._params.priority))
        self._since = time.monotonic()
        due = report = time.monotonic_ns()
        try:
            while not self._stop:
                self._inbox.wait(max(due - time.monotonic_ns(), 0))
                data = self._inbox.take()
                if data is not None:
                    self._on_joint_states(data)
                now = time.monotonic_ns()
                if now >= due:
                    due = max(due + self._period_ns, now)
                    self._on_wall_time()
                if now >= report:
                    report = now + _REPORT_NS
                    self._report()
        finally:
            self._bus.stop()
            background.stop()
        return 0

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler."""
        super().stop()
        self._inbox.wake()

    @property
    def _time_is_held(self) -> bool:
        """Whether simulated time is held at the start."""
        return self._stamp_ns == self._begin_ns

    def _on_joint_states(self, data: bytes) -> None:
        """Read the measurements, and publish them at the state rate in simulated time."""
        try:
            self._joints_reader.read(data, self._observation)
            imu = self._inbox.take_from(self._imu)
            if imu is not None:
                self._imu_reader.read(imu, self._observation)
            for k, foot in enumerate(self._feet):
                wrench = self._inbox.take_from(foot)
                if wrench is not None:
                    self._foot_reader.read(wrench, self._observation.foot_wrench[k])
        except MessageError as error:
            self._inputs.add("unreadable", f"a message of the robot was dropped: {error}")
            return
        if self._joints_reader.missing:
            names = ", ".join(self._joints_reader.missing)
            self._inputs.add("joints", f"a message on {topics.JOINT_STATES.name} was dropped: it lacks {names}")
            return
        now, before = self._joints_reader.t_ns, self._stamp_ns
        if now < before or before < 0:
            # Simulated time begins or restarts.
            self._begin_ns = self._stamp_ns = now
            self._begun, self._pressed = False, None
            return
        self._stamp_ns = now
        if now > before:
            self._tick_ns += now - before
            if now // self._period_ns > before // self._period_ns:
                self._publish()

    def _on_wall_time(self) -> None:
        """Publish states while time is held at the start, and execute the script of the remote control."""
        if self._begin_ns >= 0 and self._time_is_held:
            self._tick_ns += self._period_ns
            self._publish()
        if self._script and self._first_command_at:
            since = time.monotonic() - self._first_command_at
            while self._script and self._script[0].at <= since:
                self._remote_publisher.publish(String(data=self._script.pop(0).words))

    def _publish(self) -> None:
        with self._lock:
            remote = self._remote.state(time.monotonic())
        # Programs interpret a tick of 0 as a machine that is not connected.
        tick = self._tick_ns // 1_000_000 + 1
        self._bus.publish_state(self._low_state.serialized(self._observation, tick, remote))
        self._sent += 1

    def _on_command(self, data: bytes) -> None:
        """Pass a command on to the drives, or log its fault; called by the thread of the bus."""
        fault = self._commands.read(data)
        if fault is not None:
            self._drops.add(fault.kind, fault.text)
            return
        self._received += 1
        if not self._first_command_at:
            self._first_command_at = time.monotonic()
            self._node.get_logger().info(f"the first sound message on {COMMAND}")
        if self._time_is_held and not self._begun and not self._may_begin():
            return
        self._begun = True
        self._publisher.publish(self._impedances.write(self._commands.command))

    def _may_begin(self) -> bool:
        """Return whether simulated time may begin with the last command."""
        button = self._params.begin
        if self._gantry and not button:
            return True
        if not button:
            if not self._commands.drives and not self._logged_free:
                self._logged_free = True
                self._node.get_logger().info(
                    "its joints are free: time stays at t = 0 until one has a stiffness, a damping or a torque; with "
                    "--scenario hang it begins at once"
                )
            return self._commands.drives
        # Until the program has processed the button, its commands still repeat the previous position.
        if self._pressed is None:
            return False
        return not np.array_equal(self._pressed, self._commands.copy_position())

    def _on_remote(self, message: String) -> None:
        """Press buttons and move sticks of the remote control."""
        now = time.monotonic()
        with self._lock:
            try:
                actions = self._remote.apply(message.data, now)
            except ConfigError as error:
                self._inputs.add("remote", f"message on {topics.REMOTE.name} dropped: {error}")
                return
        words = message.data.replace(",", " ").lower().split()
        if self._pressed is None and self._params.begin.lower() in words:
            self._pressed = self._commands.copy_position()
        self._node.get_logger().info(f"remote control: {message.data}")
        for action in actions:
            if not self._gantry:
                self._inputs.add("gantry", f"there is no gantry that could {action}: begin with --scenario hang")
            elif self._gantry[action].service_is_ready():
                self._gantry[action].call_async(Trigger.Request())
            else:
                self._inputs.add("gantry", f"no node serves {self._gantry[action].srv_name}: is sim_node there?")

    def _on_velocity(self, message: Twist) -> None:
        """Move the sticks to the positions for a velocity."""
        velocity = np.array([message.linear.x, message.linear.y, message.angular.z])
        if not np.isfinite(velocity).all():
            self._inputs.add("velocity", f"message on {topics.VELOCITY.name} dropped: it is not finite")
            return
        with self._lock:
            self._remote.move(*(velocity / self._params.stick_speed).tolist())

    def _failed(self, text: str) -> None:
        self._inputs.add("failed", f"something on the DDS topics was not served: {text}")

    def _report(self) -> None:
        """Report the connected programs and the counts on /diagnostics, and log new problems."""
        programs, strangers = self._bus.programs(), self._bus.strangers()
        level, text = DiagnosticStatus.OK, f"{programs} programs on {COMMAND}"
        log = self._node.get_logger()
        for name in sorted(strangers - self._logged_strangers):
            self._logged_strangers.add(name)
            log.warning(
                f"a program publishes {name} on {COMMAND}, which this {self._machine.name} does not take: import "
                f"LowCmd_ from unitree_sdk2py.idl.{self._machine.family.name}.msg.dds_ last, or choose the program for "
                "this robot"
            )
        # A new writer is discovered before it is connected, so a misfit must persist for two reports.
        present = self._bus.misfits()
        misfits, self._misfits = min(self._misfits, present), present
        if misfits and not self._logged_misfits:
            self._logged_misfits = True
            log.warning(
                f"{misfits} on {COMMAND} not heard: the type is called {self._machine.family.name}.msg.dds_.LowCmd_ as "
                f"that of this {self._machine.name}, but its members are others, or its cyclonedds is not "
                f"{LIBRARY.split()[-1]}; is the SDK of another version?"
            )
        within_patience = time.monotonic() - self._since < _PATIENCE_S
        if not (programs or strangers or misfits or within_patience or self._logged_nobody or self._received):
            self._logged_nobody = True
            log.warning(
                f"no program is on {COMMAND} yet: it needs DDS domain {self._params.domain}, the network interface "
                f"of this node (lo, as its argument), and {LIBRARY}"
            )
        others = self._bus.robots() - 1
        if others > 0 and not self._logged_robots:
            log.warning(
                f"{others + 1} robots publish {STATE} on DDS domain {self._params.domain}: what a program sends "
                "reaches all of them; choose another domain with --set unitree.domain=N, and give it to the program"
            )
        self._logged_robots = others > 0
        dropped = self._drops.by_kind
        if strangers or misfits or dropped or others > 0:
            level, text = DiagnosticStatus.WARN, f"{text}; see the log for what is wrong with some of it"
        values = {
            "states": self._sent,
            "commands": self._received,
            "programs": programs,
            "not_heard": misfits,
            "tick": self._tick_ns // 1_000_000 + 1,
            **{f"dropped.{kind}": count for kind, count in (*dropped.items(), *self._inputs.by_kind.items())},
        }
        publish_status(self._node, self._diagnostics, "bipedsim: unitree", level, text, values, self._params.robot)


def main(args: Sequence[str] | None = None) -> int:
    """Run unitree_node; return 0, 1 after a failure, or 2 after bad parameters."""
    return run_node(UnitreeNode, args)


if __name__ == "__main__":
    sys.exit(main())
