"""Move a ball while the simulation runs: 2 m ahead, 1 m above the ground, at rest."""

import sys

import rclpy
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter

FIELDS = {"objects.ball": [2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]}  # position [m], quaternion x y z w

rclpy.init()
node = rclpy.create_node("move")
client = node.create_client(SetParametersAtomically, "/sim_node/move")
if not client.wait_for_service(timeout_sec=10.0):
    sys.exit(f"no service {client.srv_name}: start `bipedsim up` first")
request = SetParametersAtomically.Request()
request.parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in FIELDS.items()]
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future)
result = future.result().result
print(result.reason)
sys.exit(not result.successful)
