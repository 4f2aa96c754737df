from .swing import TOP as TOP, height as height
from .zmp import ZmpController as ZmpController
