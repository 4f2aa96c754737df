"""The tables of topics and of columns as the documentation shows them."""

from __future__ import annotations

from bipedsim.recording.schema import COLUMNS
from bipedsim_ros.wire.topics import TOPICS, Topic


def _lines(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]


def topic_table() -> list[str]:
    """Return the lines of the table in docs/ros_interface.md."""
    head = ("topic", "type", "published by", "QoS of our publishers", "frame", "columns of a recording", "holds")
    return _lines(head, [_topic_row(topic) for topic in TOPICS.values()])


def _topic_row(topic: Topic) -> tuple[str, ...]:
    qos = topic.offered
    words = qos.reliability.replace("_", " ")
    words += ", transient local" if qos.durability == "transient_local" else ""
    frame = topic.frame.format(side="l", imu="the IMU's")
    return (
        topic.of("left", "NAME" if topic.is_prefix or topic.per_sensor else ""),
        topic.msgtype.replace("/msg/", "/"),
        topic.by,
        f"{words}, depth {qos.depth}",
        f"{frame}, {topic.frame_of('right')}" if topic.per_foot and frame else frame,
        ", ".join(f"`{column.name}`" for column in topic.columns),
        topic.holds,
    )


def column_table() -> list[str]:
    """Return the lines of the table in docs/recording.md."""
    rows = [
        (
            f"`{column.name}`",
            column.per,
            " ".join(part for part in column.components if part),
            column.topic.format(foot="left", sensor="NAME"),
            column.doc,
        )
        for column in COLUMNS.values()
    ]
    return _lines(("column", "per", "numbers", "topic", ""), rows)
