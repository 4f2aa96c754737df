from .motions import Postures as Postures
from .references import JointReference as JointReference, ReferenceParams as ReferenceParams, Wave as Wave
from .static_support import StaticSupport as StaticSupport
from .steps import Gait as Gait
