from .contacts import WORLD as WORLD, Contacts as Contacts, Objects as Objects, add as add, clear as clear
from .step import Touching as Touching
