from .describe import Described, describe
from .doubts import find_doubts
from .importing import Imported, import_robot

__all__ = ["Described", "Imported", "describe", "find_doubts", "import_robot"]
