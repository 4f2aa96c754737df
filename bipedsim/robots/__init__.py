"""One folder per robot: a new robot is a folder with ``robot.yaml``."""
