"""Makes the environment known to Gymnasium; nothing of the simulator is loaded before one is made."""

from __future__ import annotations

from bipedsim.errors import install

try:
    from gymnasium.envs.registration import register
except ModuleNotFoundError as error:
    raise ImportError(f"bipedsim.gym needs Gymnasium: {install('bipedsim[gym]')}") from error

ID = "bipedsim/Biped-v0"
EPISODE_STEPS = 1000
"""Steps of an episode as it is registered: 20 s."""

register(ID, entry_point="bipedsim.gym:BipedEnv", max_episode_steps=EPISODE_STEPS)
