from .alternate import LoopBench, Settings
from .report import table

__all__ = ["LoopBench", "Settings", "table"]
