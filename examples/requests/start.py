"""Start again with bent knees, and with a ball 1 m ahead that rolls towards the robot."""

import sys

import rclpy
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter

FIELDS = {
    "positions.l_hip_pitch": -0.3,
    "positions.r_hip_pitch": -0.3,
    "positions.l_knee": 0.6,
    "positions.r_knee": 0.6,
    "positions.l_ankle_pitch": -0.3,
    "positions.r_ankle_pitch": -0.3,
    # position [m], quaternion x y z w, linear [m/s] and angular velocity [rad/s] in odom axes
    "objects.ball": [1.0, 0.0, 0.11, 0.0, 0.0, 0.0, 1.0, -0.2, 0.0, 0.0, 0.0, 0.0, 0.0],
}

rclpy.init()
node = rclpy.create_node("start")
client = node.create_client(SetParametersAtomically, "/sim_node/start")
if not client.wait_for_service(timeout_sec=10.0):
    sys.exit(f"no service {client.srv_name}: start `bipedsim up` first")
request = SetParametersAtomically.Request()
request.parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in FIELDS.items()]
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future)
result = future.result().result
print(result.reason)
sys.exit(not result.successful)
