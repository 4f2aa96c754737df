"""Store the observed topics of a robot, live or in a bag: publishers, subscriptions and messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from bipedsim.errors import RecordingError
from bipedsim.recording.bag import Bag, Block, Columns, Qos, columns
from bipedsim_ros.contract.robot_contract import Contract, ExpectedTopic

Stamps = NDArray[np.int64]

_WORDS: dict[str, dict[Any, str]] = {  # older bags contain the numbers of rmw
    "reliability": {1: "reliable", 2: "best_effort"},
    "durability": {1: "transient_local", 2: "volatile"},
}


@dataclass(frozen=True)
class Endpoint:
    """A publisher or subscription.

    Attributes:
        node: Name of its node; empty where it cannot be known, as in a bag; ``NO_NAME`` before discovery reports it.
        qos: Its quality of service.
    """

    node: str
    qos: Qos


@dataclass
class TopicEvidence:
    """Observations of one topic.

    Attributes:
        types: Message types used on the topic.
        publishers, subscriptions: None where the source does not contain them, such as the subscriptions in a bag.
        sent, received: (n,) times at which each message was sent and received, wall clock [ns]. Only the second is
            from the clock of this machine.
        messages: Serialised messages.
    """

    types: tuple[str, ...] = ()
    publishers: tuple[Endpoint, ...] | None = None
    subscriptions: tuple[Endpoint, ...] | None = None
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, block: Block) -> None:
        """Append messages of a bag."""
        self.sent += block.publish_time.tolist()
        self.received += block.log_time.tolist()
        self.messages += [message.data for message in block.messages()]

    @cached_property
    def columns(self) -> Columns:
        """The messages as arrays; valid only if there are messages."""
        return columns(self.messages, self.types[0])


@dataclass
class Evidence:
    """All observations of a robot.

    Attributes:
        source: Description for the report.
        live: Whether the source is a live graph and not a bag; a graph is known completely.
        topics: Topics of the contract by the robot's names; topics that do not exist are absent.
        others: Name and type of all other topics.
        command_joints: Joint order reported by the effort controller; None if it reports none.
        incomplete: Whether the source is a damaged bag, so that a difference may result from the damage.
    """

    source: str
    live: bool
    topics: dict[str, TopicEvidence]
    others: dict[str, str] = field(default_factory=dict)
    command_joints: tuple[str, ...] | None = None
    incomplete: bool = False

    def read(self, topic: ExpectedTopic) -> TopicEvidence | None:
        """Return the observations of a topic if it has messages, all of the expected type; else None."""
        observed = self.topics.get(topic.found_as)
        return observed if observed is not None and observed.messages and observed.types == (topic.msgtype,) else None

    def held_time(self, contract: Contract) -> float | None:
        """Return the time [s] at which a live simulator is held, as before its first command; None if time advances."""
        stamps = [observed.columns.stamp for topic in contract.sensors if (observed := self.read(topic)) is not None]
        if not self.live or not stamps or any(len(np.unique(values)) > 1 for values in stamps):
            return None
        times = {int(values[0]) for values in stamps}
        return 1e-9 * times.pop() if len(times) == 1 and all(len(values) > 1 for values in stamps) else None

    def no_robot(self, contract: Contract) -> bool:
        """Return whether a live graph contains no robot: no sensor topic by any name, and no subscriber to commands."""
        named = [self.topics.get(topic.found_as, TopicEvidence()) for topic in contract.sensors]
        listeners = self.topics.get(contract.commands.found_as, TopicEvidence()).subscriptions
        types = {topic.msgtype for topic in contract.sensors}
        same_types = types & set(self.others.values())
        return self.live and not same_types and not listeners and not any(observed.publishers for observed in named)


def evidence_of_bag(path: Path, contract: Contract, begin: float, duration: float) -> Evidence:
    """Read a bag directory or .mcap file.

    Args:
        path: The bag.
        contract: Topics to read.
        begin, duration: Interval to read [s], relative to the first message on the joint states.

    Raises:
        RecordingError: The file is not a bag, or contains nothing in this interval.
    """
    bag = Bag(path)
    wanted = {topic.found_as for topic in (*contract.measured, contract.commands)}
    joints = contract.joints.found_as
    topics: dict[str, TopicEvidence] = {}
    first = last = 0
    early: list[dict[str, Block]] = []
    for block in bag.blocks():
        early.append({name: part for name, part in block.items() if name in wanted})
        if joints in block:
            first, last = first or int(block[joints].log_time[0]), int(block[joints].log_time[-1])
        start = first + round(begin * 1e9)
        # Messages before the first joint states are stored until then, because the interval may begin before 0.
        for parts in early if first else ():
            for name, part in parts.items():
                rows = np.flatnonzero((part.log_time >= start) & (part.log_time < start + round(duration * 1e9)))
                topics.setdefault(name, TopicEvidence()).add(part.rows(rows))
        if first:
            early.clear()
    for name in wanted & set(bag.types):
        topic = topics.setdefault(name, TopicEvidence())
        topic.types, topic.publishers = (bag.types[name],), _offered(bag.channel_metadata.get(name, {}))
    if first and not topics[joints].messages:
        span = (last - first) * 1e-9
        raise RecordingError(f"{span:.3f} s long; nothing is left from {begin:g} s on", path)
    others = {name: bag.types[name] for name in bag.types if name not in wanted}
    source = f"bag {path}, {begin:g} to {begin + duration:g} s"
    return Evidence(source, False, topics, others, incomplete=bool(bag.recovered))


def _offered(metadata: dict[str, str]) -> tuple[Endpoint, ...] | None:
    """Return the publishers of a recorded topic; None if the bag does not contain them."""
    try:
        profiles = yaml.safe_load(metadata.get("offered_qos_profiles", "")) or []
        offers = [Qos(reliability=_word("reliability", p), durability=_word("durability", p)) for p in profiles]
    except (yaml.YAMLError, KeyError, TypeError):
        return None
    return tuple(Endpoint("", qos) for qos in offers) or None


def _word(key: str, profile: dict[str, Any]) -> str:
    return _WORDS[key].get(profile[key], str(profile[key]))
