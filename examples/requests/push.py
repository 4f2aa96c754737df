"""Push the trunk to the left at a point above its origin, with a soft begin and end."""

import sys

import rclpy
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter

FIELDS = {
    "wrench": [0.0, 60.0, 0.0, 0.0, 0.0, 0.0],  # force [N] and torque [N.m] in odom axes
    "point": [0.0, 0.0, 0.2],  # in the axes of the body [m]
    "duration": 0.2,
    "ramp": 0.05,
}

rclpy.init()
node = rclpy.create_node("push")
client = node.create_client(SetParametersAtomically, "/sim_node/push")
if not client.wait_for_service(timeout_sec=10.0):
    sys.exit(f"no service {client.srv_name}: start `bipedsim up` first")
request = SetParametersAtomically.Request()
request.parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in FIELDS.items()]
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future)
result = future.result().result
print(result.reason)
sys.exit(not result.successful)
