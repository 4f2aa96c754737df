"""Advance a paused simulation by 100 ticks."""

import sys

import rclpy
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter

FIELDS = {"ticks": 100}

rclpy.init()
node = rclpy.create_node("steps")
client = node.create_client(SetParametersAtomically, "/sim_node/steps")
if not client.wait_for_service(timeout_sec=10.0):
    sys.exit(f"no service {client.srv_name}: start `bipedsim up` first")
request = SetParametersAtomically.Request()
request.parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in FIELDS.items()]
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future)
result = future.result().result
print(result.reason)
sys.exit(not result.successful)
