from .common import reproduce as reproduce
from .papers import PAPERS as PAPERS, get_paper as get_paper
