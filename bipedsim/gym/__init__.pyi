from .biped import BipedEnv
from .registration import EPISODE_STEPS, ID

__all__ = ["EPISODE_STEPS", "ID", "BipedEnv"]
