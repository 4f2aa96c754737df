from .contacts import (
    WORLD as WORLD,
    Contacts as Contacts,
    ObjectContacts as ObjectContacts,
    add as add,
    add_impulses as add_impulses,
)
from .step import Touching as Touching
