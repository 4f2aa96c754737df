from .contacts import WORLD as WORLD, Contacts as Contacts, ObjectContacts as ObjectContacts, add as add
from .step import Touching as Touching
