from .align import ROWS as ROWS, BagRows as BagRows, recording_from_bag as recording_from_bag
from .mcap import Block as Block
from .messages import (
    Columns as Columns,
    Encoder as Encoder,
    blank as blank,
    columns as columns,
    definition as definition,
)
from .reader import (
    Bag as Bag,
    BagWriter as BagWriter,
    Pending as Pending,
    Qos as Qos,
    Topic as Topic,
    find_bag as find_bag,
    message_counts as message_counts,
    name_one as name_one,
)
