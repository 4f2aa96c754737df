"""Write a bag like that of a long launch, without ROS and simulation, to measure programs that read it.

    python benchmarks/long_bag.py runs/hour --seconds 3600
    /usr/bin/time -v bipedsim summary runs/hour
    /usr/bin/time -v bipedsim plot runs/hour

The bag has biped14 at 1 kHz on 14 topics of simulator and controller. The robot stands, and its values are noise.
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_typestore
from tqdm import tqdm

from bipedsim.model import Robot, load_robot
from bipedsim.recording import CONTACT_FIELDS
from bipedsim.recording.bag import BagWriter, Qos, Topic

STORE = get_typestore(Stores.ROS2_JAZZY)
T0 = 1_700_000_000_000_000_000
FLUSH = 100
HALF, NOISE, STAMP = 1e300, 2e300, 3e300
"""Placeholders in a template for half of the weight, for noise, and for the time."""


def message(kind: str, **values: Any) -> Any:
    """Return a message of a type, with zeros and empty texts by default."""
    cls = STORE.types[kind]
    filled = {}
    for name, hint in cls.__annotations__.items():
        if name == "__msgtype__":
            continue
        nested = next((type_name for type_name in STORE.types if type_name.replace("/", "__") == str(hint)), None)
        default = 0.0 if len(name) == 1 else np.zeros(9 if kind.endswith("Imu") else 36)
        if nested:
            default = message(nested)
        elif name in ("frame_id", "child_frame_id"):
            default = "odom"
        elif name in ("sec", "nanosec", "data_offset"):
            default = 0
        filled[name] = values.get(name, default)
    return cls(**filled)


def templates(robot: Robot) -> dict[str, tuple[str, bytearray]]:
    """Return type and serialised message of each topic."""
    vector, noise = "geometry_msgs/msg/Vector3", np.full(robot.nu, NOISE)
    wrench = message(
        "geometry_msgs/msg/Wrench",
        force=message(vector, x=NOISE, y=NOISE, z=HALF),
        torque=message(vector, x=NOISE, y=NOISE),
    )
    point = message("geometry_msgs/msg/Point", x=NOISE, y=NOISE)
    x, y, z, *quaternion = robot.q_nominal[:7].tolist()
    orientation = message("geometry_msgs/msg/Quaternion", **dict(zip("xyzw", quaternion, strict=True)))
    pose = message("geometry_msgs/msg/Pose", position=message("geometry_msgs/msg/Point", x=x, y=y, z=z))
    pose.orientation = orientation
    odometry = message("nav_msgs/msg/Odometry", pose=message("geometry_msgs/msg/PoseWithCovariance", pose=pose))
    label = message("std_msgs/msg/MultiArrayDimension", label=",".join(CONTACT_FIELDS), size=13, stride=13)
    contact = message(
        "std_msgs/msg/Float64MultiArray",
        layout=message("std_msgs/msg/MultiArrayLayout", dim=[label]),
        data=np.array([STAMP, 9.0, 15.0, 0.0, NOISE, NOISE, 4.0, *[0.0] * 6]),
    )
    position = robot.posture
    messages = {
        "/imu/data": message(
            "sensor_msgs/msg/Imu",
            orientation=orientation,
            angular_velocity=message(vector, x=NOISE, y=NOISE, z=NOISE),
            linear_acceleration=message(vector, x=NOISE, y=NOISE, z=9.81),
        ),
        "/joint_states": message(
            "sensor_msgs/msg/JointState",
            name=list(robot.joint_names),
            position=position,
            velocity=noise,
            effort=noise,
        ),
        "/cop": message("geometry_msgs/msg/PointStamped", point=point),
        "/ground_truth/odom": odometry,
        "/odom": odometry,
        "/controller/zmp_margin": message("std_msgs/msg/Float64", data=NOISE),
    }
    for foot in ("left", "right"):
        stamped = message("geometry_msgs/msg/WrenchStamped", wrench=wrench)
        messages |= {f"/{foot}_foot_ft/wrench": stamped, f"/{foot}_foot/wrench": stamped}
        messages |= {f"/{foot}_foot/cop": messages["/cop"], f"/{foot}_foot/contact": contact}
    return {
        name: (content.__msgtype__, bytearray(bytes(STORE.serialize_cdr(content, content.__msgtype__))))
        for name, content in messages.items()
    }


def find_number(raw: bytearray, value: float) -> list[int]:
    """Return the offsets of a number in a serialised message."""
    return [offset for offset in range(4, len(raw) - 7) if raw[offset : offset + 8] == struct.pack("<d", value)]


def main() -> None:
    """Write the bag."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the run; the bag is made in it")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rate", type=float, default=1000.0, help="[Hz]")
    args = parser.parse_args()
    robot = load_robot("biped14")
    bag = BagWriter(args.folder / "bag", {"robot": "biped14", "feet": "left,right"})
    topics = []
    for name, (msgtype, raw) in templates(robot).items():
        definition, _ = STORE.generate_msgdef(msgtype, ros_version=2)
        number = bag.add_topic(Topic(name, msgtype, definition, STORE.hash_rihs01(msgtype), (Qos(depth=1000),)))
        for offset in find_number(raw, HALF):
            struct.pack_into("<d", raw, offset, 0.5 * robot.weight)
        topics.append((number, raw, not msgtype.startswith("std_msgs")))
    spots = [(find_number(raw, NOISE), find_number(raw, STAMP)) for _, raw, _ in topics]
    rng = np.random.default_rng(0)
    period = 1e9 / args.rate
    for first in tqdm(range(0, round(args.seconds * args.rate), FLUSH), unit="flush"):
        for i in range(first, first + FLUSH):
            t = round(i * period)
            noise = (1e-3 * rng.standard_normal(28)).tolist()
            for k, ((number, raw, stamped), (noisy, timed)) in enumerate(zip(topics, spots, strict=True)):
                if stamped:
                    struct.pack_into("<iI", raw, 4, *divmod(t, 1_000_000_000))
                for offset, value in zip(noisy, noise, strict=False):
                    struct.pack_into("<d", raw, offset, value)
                for offset in timed:
                    struct.pack_into("<d", raw, offset, 1e-9 * t)
                bag.add_message(number, T0 + t + 10_000 * k, T0 + t + 10_000 * k, bytes(raw), i & 0xFFFFFFFF)
        bag.flush()
    bag.close()


if __name__ == "__main__":
    main()
