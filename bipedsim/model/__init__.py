"""Load a robot from robot.yaml and URDF: pinocchio model, soles, drives and standing posture."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
