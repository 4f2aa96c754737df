"""What a robot is: robot.yaml and URDF read into a pinocchio model, soles, drives, and a posture that stands."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
