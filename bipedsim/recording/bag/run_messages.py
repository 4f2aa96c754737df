"""Settings, events and statistics of a run, which the simulator publishes as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bipedsim.errors import RecordingError
from bipedsim.recording.bag.mcap import Block
from bipedsim.recording.bag.messages import text
from bipedsim.recording.schema import ABOUT, EVENTS, RUN, STATISTICS

LATEST = 9e9
"""Largest time of a run [s]; later times have no 64-bit stamp in nanoseconds."""


class RunMessages:
    """Collect the messages on the topic ``RUN``.

    Attributes:
        errors: Descriptions of the messages that cannot be read.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self.errors: list[str] = []

    def read(self, block: Block) -> None:
        """Store the settings of the run, its events and its statistics."""
        for message in block.messages():
            try:
                self._messages.append(_run_message(message.data))
            except RecordingError as error:
                self.errors.append(f"{RUN}: a message is unreadable ({error}): the run cannot be simulated again")

    @property
    def found(self) -> bool:
        """Whether there were any messages, so that the bag is from a simulator."""
        return bool(self._messages or self.errors)

    def run(self, back: int) -> dict[str, Any]:
        """Return the data for simulating a segment again, ``back`` segments from the end; {} if the bag lacks them."""
        starts = [i for i, message in enumerate(self._messages) if not {*EVENTS, STATISTICS} & message.keys()]
        # A reset before the first row starts no segment, so the segments are counted from the end.
        if back > len(starts) or self.errors:
            return {}
        first, last = starts[-back], [*starts, len(self._messages)][len(starts) - back + 1]
        run: dict[str, Any] = {**self._messages[first], "pushes": []}
        for message in self._messages[first + 1 : last]:
            for kind in EVENTS.keys() & message.keys():
                run.setdefault(EVENTS[kind], []).append(message[kind])
        return run

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        """Counters of the simulator, once the bag has been read; None if they should be there and are not."""
        statistics = [message[STATISTICS] for message in self._messages if STATISTICS in message]
        return statistics[-1] if statistics else None if self._messages else {}

    @property
    def period(self) -> int | None:
        """Time between two joint states [ns]; None if it is unknown."""
        periods = [message["control_dt"] for message in self._messages if "control_dt" in message]
        return round(periods[-1] * 1e9) if periods else None

    @property
    def labels(self) -> dict[str, Any]:
        """Contact model and labels of the last run, for figures."""
        starts = [message for message in self._messages if "contact_model" in message]
        return {**starts[-1].get(ABOUT, {}), "contact_model": starts[-1]["contact_model"]} if starts else {}


def json_object(message: bytes) -> dict[str, Any]:
    """Return the JSON object in a std_msgs/String.

    Raises:
        RecordingError: The string is not a JSON object.
    """
    return object_of(text(message))


def object_of(json_text: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        RecordingError: The text is not a JSON object.
    """
    try:
        content = json.loads(json_text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"it is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordingError(f"it is not a JSON object but {type(content).__name__}")
    return content


def _run_message(message: bytes) -> dict[str, Any]:
    """Return the content of a message on the topic ``RUN``.

    Raises:
        RecordingError: A value that the reader needs has another type.
    """
    content = json_object(message)
    period, statistics = content.get("control_dt", 1.0), content.get(STATISTICS, {})
    about = content.get(ABOUT, {})
    valid = {
        "control_dt": isinstance(period, (int, float)) and 0.0 < period < LATEST,
        "contact_model": isinstance(content.get("contact_model", ""), str),
        ABOUT: isinstance(about, dict) and all(isinstance(text, str) for text in about.values()),
        STATISTICS: isinstance(statistics, dict)
        and isinstance(duration := statistics.get("duration_s") or 0.0, (int, float))
        and abs(duration) < LATEST,
    }
    invalid = [name for name, is_valid in valid.items() if not is_valid]
    if invalid:
        raise RecordingError(f"{invalid[0]} = {content[invalid[0]]!r}")
    return content
