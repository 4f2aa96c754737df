from .align import ROWS, BagRows, recording_from_bag
from .mcap import Block
from .messages import Columns, Encoder, blank, columns, definition
from .reader import Bag, BagWriter, Pending, Qos, Topic, find_bag, message_counts, name_one

__all__ = [
    "ROWS",
    "Bag",
    "BagRows",
    "BagWriter",
    "Block",
    "Columns",
    "Encoder",
    "Pending",
    "Qos",
    "Topic",
    "blank",
    "columns",
    "definition",
    "find_bag",
    "message_counts",
    "name_one",
    "recording_from_bag",
]
