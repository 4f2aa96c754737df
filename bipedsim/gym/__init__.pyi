from .biped import BipedEnv as BipedEnv
from .registration import EPISODE_STEPS as EPISODE_STEPS, ID as ID
