"""Read the topics of additional IMUs and contact switches from a bag."""

from __future__ import annotations

from collections.abc import Collection

from bipedsim.errors import RecordingError
from bipedsim.recording.bag.reader import Bag
from bipedsim.recording.bag.run_messages import object_of
from bipedsim.recording.bag.segments import LABELLED, AlignedRows
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import ADDITIONAL_IMU, IMU, SENSORS, SWITCH, USER_TOPICS

IMU_TYPE, SWITCH_TYPE = "sensor_msgs/msg/Imu", "std_msgs/msg/Bool"
_IMU_FIELDS = {"orientation": slice(0, 4), "angular_velocity": slice(4, 7), "linear_acceleration": slice(7, 10)}
"""Field of a message to its part of the column ``imus``."""


class SensorTopics:
    """Find the topics of additional sensors in a bag, and copy their messages into a recording.

    A recorder that knows the robot stores names and topics in the bag. In other bags, every topic with the default name
    and the type of such a sensor is one.

    Args:
        bag: The bag.
        columns: Columns to read.

    Attributes:
        imus, switches: Name of each sensor to its topic.
        error: Reason why the stored names are not used; empty if they are, or if there are none.
    """

    def __init__(self, bag: Bag, columns: Collection[str]) -> None:
        self.error = ""
        stored: dict[str, str] | None = None
        if SENSORS in bag.custom_data:
            try:
                stored = _names(bag.custom_data[SENSORS])
            except RecordingError as error:
                self.error = str(error)
        of_user = bag.custom_data.get(USER_TOPICS, "").split(",")
        found = {topic: name for name, topic in (stored or {}).items()}
        for topic in sorted(bag.types) if stored is None else ():
            for pattern in (ADDITIONAL_IMU, SWITCH):
                head, _, tail = pattern.partition("{sensor}")
                name = topic.removeprefix(head).removesuffix(tail)
                if topic == pattern.format(sensor=name) and "/" not in name and topic not in (IMU, *of_user):
                    found[topic] = name
        self.imus = {
            name: topic for topic, name in found.items() if bag.types.get(topic) == IMU_TYPE and "imus" in columns
        }
        self.switches = {
            name: topic
            for topic, name in found.items()
            if bag.types.get(topic) == SWITCH_TYPE and "contact_switches" in columns
        }
        self._imu_topics, self._switch_topics = {*self.imus.values()}, {*self.switches.values()}

    def fields_of(self, topic: str) -> set[str]:
        """Return the fields to decode of the messages on a topic; empty if no additional sensor has it."""
        if topic in self._imu_topics:
            return {*_IMU_FIELDS}
        return {LABELLED} if topic in self._switch_topics else set()

    def leads(self, topic: str) -> bool:
        """Return whether the messages of a topic have no stamp, and precede the joint states of their row."""
        return topic in self._switch_topics

    def put(self, out: Recording, rows: AlignedRows) -> None:
        """Copy the messages that belong to ``rows`` into ``out``."""
        for i, topic in enumerate(self.imus.values()):
            at, table = rows.match(topic)
            if table is not None:
                for field, part in _IMU_FIELDS.items():
                    out.imus[at, i, part] = table.values[field]
        for i, topic in enumerate(self.switches.values()):
            at, table = rows.match(topic)
            if table is not None:
                out.contact_switches[at, i] = table.values[LABELLED][:, 0] != 0.0


def _names(json_text: str) -> dict[str, str]:
    """Return the name of each additional sensor and its topic, as the recorder stores them.

    Raises:
        RecordingError: The text is not a JSON object of texts.
    """
    names = object_of(json_text)
    for name, topic in names.items():
        if not isinstance(topic, str):
            raise RecordingError(f"the topic of {name!r} is {topic!r}")
    return names
