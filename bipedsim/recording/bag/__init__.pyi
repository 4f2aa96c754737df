from .align import BagRows as BagRows, recording_from_bag as recording_from_bag
from .cdr import (
    FIELDS as FIELDS,
    NS_PER_S as NS_PER_S,
    Encoder as Encoder,
    Walk as Walk,
    blank as blank,
    is_plain as is_plain,
    labelled as labelled,
)
from .mcap import Block as Block
from .messages import Columns as Columns, columns as columns
from .reader import (
    MACHINE as MACHINE,
    Bag as Bag,
    BagWriter as BagWriter,
    Pending as Pending,
    Qos as Qos,
    Topic as Topic,
    find_bag as find_bag,
    message_counts as message_counts,
    name_one as name_one,
)
from .segments import ROWS as ROWS
