"""What was seen of a robot's topics, live or in a bag: who publishes, and what arrived when."""

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
from bipedsim_ros.contract.expected import Contract, ExpectedTopic

Stamps = NDArray[np.int64]

_WORDS: dict[str, dict[Any, str]] = {  # older bags hold the numbers of rmw
    "reliability": {1: "reliable", 2: "best_effort"},
    "durability": {1: "transient_local", 2: "volatile"},
}


@dataclass(frozen=True)
class Endpoint:
    """A publisher or subscription.

    Attributes:
        node: Name of its node; empty where nobody can know it, as in a bag, ``NO_NAME`` where discovery has yet to say.
        qos: Its quality of service.
    """

    node: str
    qos: Qos


@dataclass
class TopicEvidence:
    """What was seen of one topic.

    Attributes:
        types: Types that are used on it.
        publishers, subscriptions: None where the source cannot know them, as a bag the subscriptions.
        sent, received: (n,) when each message left its publisher and when it arrived, wall clock [ns]. Both ends'
            clocks count: only the second is that of who watches.
        messages: Serialised.
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
        """Take messages of a bag."""
        self.sent += block.publish_time.tolist()
        self.received += block.log_time.tolist()
        self.messages += [message.data for message in block.messages()]

    @cached_property
    def columns(self) -> Columns:
        """The messages as arrays; ask only when there are some."""
        return columns(self.messages, self.types[0])


@dataclass
class Evidence:
    """What was seen.

    Attributes:
        source: In words, for the report.
        live: Whether it is a graph, of which everything is known, and no bag.
        topics: Topics of the contract, by the robot's names; those that nobody knows are absent.
        others: All other topics: name to type.
        command_joints: Order of joints that the effort controller says it has; None if nobody says.
        incomplete: Whether it is a bag of which messages are missing, so that what differs may be its damage.
    """

    source: str
    live: bool
    topics: dict[str, TopicEvidence]
    others: dict[str, str] = field(default_factory=dict)
    command_joints: tuple[str, ...] | None = None
    incomplete: bool = False

    def read(self, topic: ExpectedTopic) -> TopicEvidence | None:
        """Return what came on a topic, if it is of the expected type alone."""
        seen = self.topics.get(topic.found_as)
        return seen if seen is not None and seen.messages and seen.types == (topic.msgtype,) else None

    def held(self, contract: Contract) -> float | None:
        """Return the time [s] at which a live simulator stands, as before its first command; None if time passes."""
        found = [seen.columns.stamp for topic in contract.sensors if (seen := self.read(topic)) is not None]
        if not self.live or not found or any(len(np.unique(stamps)) > 1 for stamps in found):
            return None
        at = {int(stamps[0]) for stamps in found}
        return 1e-9 * at.pop() if len(at) == 1 and all(len(stamps) > 1 for stamps in found) else None

    def nobody(self, contract: Contract) -> bool:
        """Return whether a live graph holds nothing of a robot: no sensor, by whatever name, and nobody who obeys."""
        named = [self.topics.get(topic.found_as, TopicEvidence()) for topic in contract.sensors]
        obeys = self.topics.get(contract.commands.found_as, TopicEvidence()).subscriptions
        types = {topic.msgtype for topic in contract.sensors}
        alike = types & set(self.others.values())
        return self.live and not alike and not obeys and not any(seen.publishers for seen in named)


def evidence_of_bag(path: Path, contract: Contract, begin: float, duration: float) -> Evidence:
    """Read a bag directory or .mcap file.

    Args:
        path: The bag.
        contract: Topics that are wanted.
        begin, duration: Which part of it [s], counted from its first message on the joint states.

    Raises:
        RecordingError: No bag, or a damaged one.
    """
    bag = Bag(path)
    wanted = {topic.found_as for topic in (*contract.sensors, contract.commands)}
    joints = contract.joints.found_as
    topics: dict[str, TopicEvidence] = {}
    first = last = 0
    early: list[dict[str, Block]] = []
    for block in bag.blocks():
        early.append({name: part for name, part in block.items() if name in wanted})
        if joints in block:
            first, last = first or int(block[joints].log_time[0]), int(block[joints].log_time[-1])
        start = first + round(begin * 1e9)
        # What came before the first joint states waits for them, for a part may begin before 0.
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
        raise RecordingError(f"{path}: {span:.3f} s long; nothing is left from {begin:g} s on")
    others = {name: bag.types[name] for name in bag.types if name not in wanted}
    source = f"bag {path}, {begin:g} to {begin + duration:g} s"
    return Evidence(source, False, topics, others, incomplete=bool(bag.recovered))


def _offered(metadata: dict[str, str]) -> tuple[Endpoint, ...] | None:
    """Return the publishers of a recorded topic; None if the bag does not say."""
    try:
        profiles = yaml.safe_load(metadata.get("offered_qos_profiles", "")) or []
        found = [Qos(reliability=_word("reliability", p), durability=_word("durability", p)) for p in profiles]
    except (yaml.YAMLError, KeyError, TypeError):
        return None
    return tuple(Endpoint("", qos) for qos in found) or None


def _word(key: str, profile: dict[str, Any]) -> str:
    return _WORDS[key].get(profile[key], str(profile[key]))
