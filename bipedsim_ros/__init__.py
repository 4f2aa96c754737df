"""ROS 2 nodes of bipedsim, which convert observations to messages and messages to commands."""
