"""The ROS 2 nodes of bipedsim: a thin layer that turns observations into messages and messages into commands."""
