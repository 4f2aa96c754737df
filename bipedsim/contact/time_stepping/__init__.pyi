from .lcp import Lcp
from .ncp import Ncp

__all__ = ["Lcp", "Ncp"]
