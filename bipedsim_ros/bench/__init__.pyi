from .alternate import LoopBench as LoopBench, Settings as Settings
from .report import table as table
