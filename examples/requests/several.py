"""Start again, move a ball and push the robot: all between the same two ticks, or nothing."""

import sys

import rclpy
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter

REQUESTS = [
    ("start", "{posture: standing}"),
    ("move", "{objects: {ball: [0.0, 2.0, 0.5, 0, 0, 0, 1]}}"),
    ("push", "{wrench: [20, 0, 0, 0, 0, 0], duration: 0.1}"),
]

rclpy.init()
node = rclpy.create_node("several")
client = node.create_client(SetParametersAtomically, "/sim_node/list")
if not client.wait_for_service(timeout_sec=10.0):
    sys.exit(f"no service {client.srv_name}: start `bipedsim up` first")
request = SetParametersAtomically.Request()
request.parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in REQUESTS]
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future)
result = future.result().result
print(result.reason)
sys.exit(not result.successful)
