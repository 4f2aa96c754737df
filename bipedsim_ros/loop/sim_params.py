"""Parameters of sim_node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bipedsim.config import RunConfig, like, param
from bipedsim.errors import ConfigError
from bipedsim.model import IDEAL
from bipedsim.runs import Push, Scenario
from bipedsim_ros.loop.own_core import wrong_cores

CLOCKS = ("real_time", "as_fast_as_possible", "lock_step")
RATE_CHECKS = ("refuse", "warn", "off")
COMMAND_INTERFACES = ("controllers", "topic_based")
STARTS = ("wait_for_command", "immediately", "hold_position")
TIMEOUT_MODES = ("damping", "zero", "hold", "stiff")


def wrong_sign(ft_sign: float) -> Iterator[ConfigError]:
    """Yield an error message if the sign of the wrenches is not 1 or -1."""
    if abs(ft_sign) != 1.0:
        yield ConfigError("must be 1 or -1", "ft_sign", ft_sign)


@dataclass(frozen=True)
class SimParams:
    """Parameters of sim_node."""

    robot: str = like(RunConfig, "robot")
    posture: str = like(RunConfig, "posture")
    contact_model: str = like(RunConfig, "contact_model")
    ground: str = like(RunConfig, "ground", "flat")
    hardware: str = like(RunConfig, "hardware", IDEAL)
    seed: int = like(RunConfig, "seed")
    clock: str = param(
        "real_time",
        "real_time keeps `rate` on the wall clock; as_fast_as_possible never waits; "
        "lock_step waits for one command per published state",
        choices=CLOCKS,
    )
    rate: float = like(RunConfig, "rate", doc="published states per second of simulated time")
    physics_dt: float = like(RunConfig, "physics_dt", 1e-3)
    real_time_factor: float = param(
        1.0,
        "real_time: simulated seconds per second of the wall clock; it may change while the node runs",
        low=0.01,
        high=100.0,
        live=True,
    )
    rate_check: str = param(
        "refuse",
        "real_time: measure the step at the start, and refuse a rate that this machine cannot keep, or warn only",
        choices=RATE_CHECKS,
    )
    start: str = param(
        "wait_for_command",
        "before the first command: wait_for_command holds the physics at t = 0; "
        "immediately lets the robot go with zero torque; hold_position starts, and the drives hold the joints",
        choices=STARTS,
    )
    command_interface: str = param(
        "controllers",
        "where commands come from: controllers are the topics of ros2_control's controllers, topic_based is "
        "/robot_joint_commands alone, from your own controller manager",
        choices=COMMAND_INTERFACES,
    )
    wait_for_recorder: bool = param(
        False, "hold the physics at t = 0 until a node listens to every topic too, for 10 s at most"
    )
    command_timeout: float = param(
        0.2,
        "simulated time without a sound command after which timeout_mode acts",
        unit="s",
        low=0.0,
        high=1e9,
        live=True,
    )
    timeout_mode: str = param("damping", "what the joints do after command_timeout", choices=TIMEOUT_MODES, live=True)
    timeout_damping: float = param(
        1.0,
        "damping and stiff: share of the effort limit at the velocity limit of the joint",
        low=0.0,
        high=100.0,
        live=True,
    )
    timeout_stiffness: float = param(
        10.0,
        "stiff: share of the effort limit per radian of distance to where the timeout began",
        unit="1/rad",
        low=0.0,
        high=1e4,
        live=True,
    )
    lock_step_timeout: float = param(
        1.0,
        "lock_step: wall time to wait for a command before a miss is counted and the step taken",
        unit="s",
        low=1e-3,
        high=1e6,
    )
    push_timeout: float = like(Push, "duration", 0.5, "how long a message on /push acts", live=True)
    pushes: tuple[str, ...] = param(
        (),
        "scheduled pushes 'start duration fx fy fz [body [frame]]' in s, s and N; body is the root link by default or "
        "as 'root', frame 'world' (odom axes) or 'heading'",
    )
    objects: tuple[str, ...] = param(
        (), "free rigid bodies, each in JSON with the keys of `objects` in a scenario file (docs/objects.md)"
    )
    force_plates: tuple[str, ...] = param(
        (), "force plates, each in JSON with the keys of `force_plates` in a scenario file (docs/force_plates.md)"
    )
    faults: str = like(RunConfig, "faults")
    gantry: str = like(RunConfig, "gantry", "")
    drop_height: float = like(Scenario, "drop_height")
    height_scan: tuple[float, float, float] = param(
        (0.0, 0.0, 0.0), "[length, width, resolution] of /height_scan around the base; zeros: none", unit="m", low=0.0
    )
    vertex_forces: bool = param(
        False, "publish the forces at the vertices of the soles too, of contact models that find them, on level ground"
    )
    ft_sign: float = param(
        1.0,
        "sign of the ankle wrenches: 1 is the ground on the foot (standing gives f_z > 0), -1 the reverse",
        low=-1.0,
        high=1.0,
    )
    tf_rate: float = param(
        100.0, "transforms odom -> base_link per second, where tf2_msgs is installed", unit="Hz", low=0.0, high=1000.0
    )
    priority: int = param(
        50,
        "priority (SCHED_FIFO) of the threads in real_time, and idle cores that stay awake while the loop runs, where "
        "the system permits it; 0 is neither",
        low=0,
        high=98,
    )
    cpu_affinity: str = param(
        "auto",
        "cores of the loop's threads: auto is one that no other node has taken, with that priority or without "
        "deadlines; any, or some as in '2' or '2,3'",
    )
    duration: float = like(RunConfig, "duration", 0.0, "simulated time after which everything ends; 0 is never")
    title: str = param(
        "", "what runs, such as the name or file of a scenario: for the titles of figures of the recording"
    )
    stats_file: str = param("", "JSON file for the statistics, rewritten every second and at the end")

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each invalid field or combination of fields."""
        if self.real_time_factor != 1.0 and self.clock != "real_time":
            yield ConfigError(
                f"needs clock = 'real_time': with {self.clock!r} there is no wall clock to keep up with",
                "real_time_factor",
                self.real_time_factor,
            )
        yield from wrong_sign(self.ft_sign)
        length, width, resolution = self.height_scan
        if any(self.height_scan) and not resolution > 1e-3 * max(length, width):
            problem = "must have a resolution of at least a thousandth of the edges; usual is [1.6, 1.0, 0.1]"
            yield ConfigError(problem, "height_scan", list(self.height_scan))
        yield from wrong_cores(self.cpu_affinity)
