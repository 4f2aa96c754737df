from . import conversions, topics
from .conversions import (
    CommandReader,
    CommandWriter,
    Fault,
    ImuReader,
    JointStateReader,
    NumberWriter,
    OdometryWriter,
    TwistReader,
    TwistWriter,
    WrenchReader,
)
from .endpoints import described, message_class, offered_qos, profile, publisher, qos_words, recorder_profile, requested
from .message_definitions import definition_of
from .network import THIS_MACHINE, NetworkParams, add_network_option, network_environment
from .topics import BASE_FRAME, FEET_FRAME, TOPICS, WORLD_FRAME, Topic, ankle_frame, incompatible, sole_frame
from .transforms import make_transforms
from .wire import NS_PER_S, MessageError, parse

__all__ = [
    "BASE_FRAME",
    "FEET_FRAME",
    "NS_PER_S",
    "THIS_MACHINE",
    "TOPICS",
    "WORLD_FRAME",
    "CommandReader",
    "CommandWriter",
    "Fault",
    "ImuReader",
    "JointStateReader",
    "MessageError",
    "NetworkParams",
    "NumberWriter",
    "OdometryWriter",
    "Topic",
    "TwistReader",
    "TwistWriter",
    "WrenchReader",
    "add_network_option",
    "ankle_frame",
    "conversions",
    "definition_of",
    "described",
    "incompatible",
    "make_transforms",
    "message_class",
    "network_environment",
    "offered_qos",
    "parse",
    "profile",
    "publisher",
    "qos_words",
    "recorder_profile",
    "requested",
    "sole_frame",
    "topics",
]
