from .describing import Described as Described, describe as describe
from .doubts import find_doubts as find_doubts
from .importing import Imported as Imported, import_robot as import_robot
from .legs import mirrors as mirrors
from .mjcf_model import compiled_mjcf as compiled_mjcf, mjcf_files as mjcf_files
