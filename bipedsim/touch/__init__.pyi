from .contacts import WORLD, Contacts, Objects, add, clear
from .step import Touching

__all__ = ["WORLD", "Contacts", "Objects", "Touching", "add", "clear"]
