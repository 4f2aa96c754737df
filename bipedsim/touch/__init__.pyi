from .contacts import WORLD as WORLD, Contacts as Contacts, ObjectContacts as ObjectContacts, add as add, clear as clear
from .step import Touching as Touching
