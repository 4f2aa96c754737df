"""The compass under PFL as a return map: stable as it is, unstable where its gain has the wrong sign."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.controllers.pfl import PflController
from bipedsim.reproduce.adubredu.ideal_walker import WALKER, pfl
from bipedsim.reproduce.adubredu.walker import START
from bipedsim.stability.fixed_point import fixed_point, stability
from bipedsim.stability.gait import Gait
from bipedsim.stability.straight_legs import EventMap
