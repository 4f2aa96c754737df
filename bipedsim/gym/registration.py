"""Register the environment with Gymnasium; the simulator is imported only when an environment is created."""

from __future__ import annotations

from bipedsim.errors import install

try:
    from gymnasium.envs.registration import register
except ModuleNotFoundError as error:
    raise ImportError(f"bipedsim.gym needs Gymnasium: {install('bipedsim[gym]')}") from error

ID = "bipedsim/Biped-v0"
EPISODE_STEPS = 1000
"""Steps of an episode in the registered environment: 20 s."""

register(ID, entry_point="bipedsim.gym:BipedEnv", max_episode_steps=EPISODE_STEPS)
