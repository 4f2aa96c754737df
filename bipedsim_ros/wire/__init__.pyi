from . import conversions, topics
from .conversions import (
    ImuReader,
    JointStateReader,
    NumberWriter,
    OdometryWriter,
    TwistReader,
    TwistWriter,
    WrenchReader,
)
from .domains import FIRST, LAST, STANDARD_BASE, free_domain, in_use, participants, ports, surely_empty
from .endpoints import (
    PatientPublisher,
    described,
    message_class,
    offered_qos,
    profile,
    publisher,
    qos_words,
    recorder_profile,
    requested,
)
from .joint_commands import CommandReader, CommandWriter, Fault, ImpedanceReader, ImpedanceWriter
from .message_definitions import definition_of
from .network import THIS_MACHINE, WHERE, NetworkParams, add_network_option, network_environment
from .topics import BASE_FRAME, FEET_FRAME, TOPICS, WORLD_FRAME, Topic, ankle_frame, incompatible, sole_frame
from .trajectories import Waypoints, read_trajectory
from .transforms import make_transforms
from .wire import NS_PER_S, MessageError, parse

__all__ = [
    "BASE_FRAME",
    "FEET_FRAME",
    "FIRST",
    "LAST",
    "NS_PER_S",
    "STANDARD_BASE",
    "THIS_MACHINE",
    "TOPICS",
    "WHERE",
    "WORLD_FRAME",
    "CommandReader",
    "CommandWriter",
    "Fault",
    "ImpedanceReader",
    "ImpedanceWriter",
    "ImuReader",
    "JointStateReader",
    "MessageError",
    "NetworkParams",
    "NumberWriter",
    "OdometryWriter",
    "PatientPublisher",
    "Topic",
    "TwistReader",
    "TwistWriter",
    "Waypoints",
    "WrenchReader",
    "add_network_option",
    "ankle_frame",
    "conversions",
    "definition_of",
    "described",
    "free_domain",
    "in_use",
    "incompatible",
    "make_transforms",
    "message_class",
    "network_environment",
    "offered_qos",
    "parse",
    "participants",
    "ports",
    "profile",
    "publisher",
    "qos_words",
    "read_trajectory",
    "recorder_profile",
    "requested",
    "sole_frame",
    "surely_empty",
    "topics",
]
