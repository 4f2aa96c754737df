from . import conversions as conversions, topics as topics
from .bundle import BundleReader as BundleReader, BundleWriter as BundleWriter
from .conversions import (
    HeightScanReader as HeightScanReader,
    ImuReader as ImuReader,
    JointStateReader as JointStateReader,
    SwitchReader as SwitchReader,
    TwistReader as TwistReader,
    TwistWriter as TwistWriter,
    WrenchReader as WrenchReader,
)
from .departures import Departures as Departures
from .domains import (
    FIRST as FIRST,
    LAST as LAST,
    STANDARD_BASE as STANDARD_BASE,
    ClaimedDomain as ClaimedDomain,
    free_domain as free_domain,
    in_use as in_use,
    participants as participants,
    ports as ports,
    surely_empty as surely_empty,
)
from .endpoints import (
    PatientPublisher as PatientPublisher,
    described as described,
    listeners as listeners,
    message_class as message_class,
    offered_qos as offered_qos,
    profile as profile,
    publisher as publisher,
    qos_words as qos_words,
    recorder_profile as recorder_profile,
    relative as relative,
    requested as requested,
)
from .goals import Goal as Goal, Tolerances as Tolerances, read_goal as read_goal
from .joint_commands import (
    CommandFault as CommandFault,
    CommandReader as CommandReader,
    CommandWriter as CommandWriter,
    ImpedanceReader as ImpedanceReader,
    ImpedanceWriter as ImpedanceWriter,
    JointCommandReader as JointCommandReader,
)
from .message_definitions import definition_of as definition_of
from .network import (
    NAMING_S as NAMING_S,
    NO_NAME as NO_NAME,
    THIS_MACHINE as THIS_MACHINE,
    UNNAMED as UNNAMED,
    WHERE as WHERE,
    NetworkParams as NetworkParams,
    join_graph as join_graph,
    network_environment as network_environment,
    node_environment as node_environment,
    require_rclpy as require_rclpy,
)
from .ros2_control import controlled_urdf as controlled_urdf
from .shared_memory import left_memory as left_memory, remove_left_memory as remove_left_memory
from .topics import (
    BASE_FRAME as BASE_FRAME,
    FEET_FRAME as FEET_FRAME,
    TOPICS as TOPICS,
    WORLD_FRAME as WORLD_FRAME,
    Topic as Topic,
    ankle_frame as ankle_frame,
    incompatible as incompatible,
    sole_frame as sole_frame,
)
from .trajectories import Waypoints as Waypoints, read_trajectory as read_trajectory
from .transforms import TransformsWatch as TransformsWatch, make_transforms as make_transforms
from .wire import (
    Layout as Layout,
    MessageError as MessageError,
    WireReader as WireReader,
    parse as parse,
)
