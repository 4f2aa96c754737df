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
from .topics import BASE_FRAME, FEET_FRAME, TOPICS, WORLD_FRAME, Topic, ankle_frame, incompatible, sole_frame
from .transforms import make_transforms
from .wire import NS_PER_S, MessageError, parse

__all__ = [
    "BASE_FRAME",
    "FEET_FRAME",
    "NS_PER_S",
    "TOPICS",
    "WORLD_FRAME",
    "CommandReader",
    "CommandWriter",
    "Fault",
    "ImuReader",
    "JointStateReader",
    "MessageError",
    "NumberWriter",
    "OdometryWriter",
    "Topic",
    "TwistReader",
    "TwistWriter",
    "WrenchReader",
    "ankle_frame",
    "conversions",
    "definition_of",
    "described",
    "incompatible",
    "make_transforms",
    "message_class",
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
