"""``recorder_node``: raw messages to a rosbag2 MCAP bag, without loss at 1 kHz on many topics, readable after a SIGKILL.

Three decisions, each measured (docs/recording.md):

* The bag is written by :mod:`bipedsim.bag`. The writer of ``rosbags`` flushes by size only (a slow topic would lose many seconds at a SIGKILL)
  and ``mcap``'s leaves a killed file without its summary; ours costs 1 us a message and is a complete file after every flush.
* Messages are polled every 5 ms, not waited for. A recorder may be late, and DDS stamps each message when it arrives: one pass over deep
  queues costs half of what an executor's wake-up and callback per message do, and its wait set traps do not exist here.
* What was lost is known, not guessed: DDS numbers the messages of a publisher, so a gap is a loss, and the first number says how many
  were published before this subscription existed.

This thread takes and sorts; a second one compresses and writes; what waits between them is bounded. A full disk ends the recording with an
error and leaves what was written readable.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rosidl_runtime_py.utilities import get_message

from bipedsim.bag import BagWriter, Qos, Topic
from bipedsim.errors import BipedSimError, ConfigError
from bipedsim_ros.message_definitions import definition_of, type_hash_of

GRAPH_PERIOD = 0.5
DIAGNOSTICS_PERIOD = 1.0
QUEUE_DEPTH = 5000
# A message that DDS has stamped but not yet queued when a pass ends must still come before its successors.
HOLD_BACK_NS = 10_000_000
