from .common import reproduce
from .papers import PAPERS, get_paper

__all__ = ["PAPERS", "get_paper", "reproduce"]
