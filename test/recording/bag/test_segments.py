"""Segments of a bag: which messages belong to which one, where topics reset at slightly different times."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.recording.bag.segments import END, LABELLED, Segments, TopicMessages
from bipedsim.recording.schema import CONTROLLER_CHANGES, IMU, JOINT_STATES

MS = 1_000_000
SWITCH = "/switch"


def messages(arrived: list[int], stamps: list[int]) -> TopicMessages:
    numbers = np.arange(len(stamps), dtype=np.float64)[:, None]
    return TopicMessages(np.array(arrived) * MS, np.array(arrived) * MS, np.array(stamps) * MS, {LABELLED: numbers})


@pytest.mark.parametrize("first_after_reset", [495, 502])
def test_changes_repeated_at_a_reset_belong_to_the_new_segment(first_after_reset: int) -> None:
    """They may reach the recorder before or after the first joint states of the new segment."""
    segments = Segments()
    segments.add(JOINT_STATES, messages(list(range(1000)), [*range(500), *range(500)]))
    segments.add(CONTROLLER_CHANGES, messages([51, 109, first_after_reset, first_after_reset], [50, 108, 0, 0]))
    taken: dict[int, list[float]] = {}
    for rows in segments.rows(END):
        taken.setdefault(rows.segment, []).extend(rows.all_of(CONTROLLER_CHANGES, 1)[:, 0])
    assert taken == {0: [0.0, 1.0], 1: [2.0, 3.0]}


@pytest.mark.parametrize("late", [0, 300, 2500])
def test_a_topic_that_dds_sends_again_stays_in_its_segments(late: int) -> None:
    """From row 400 on, all its messages arrive together, with the one that was lost."""
    segments = Segments()
    stamps = [*range(500), *range(500)]
    segments.add(JOINT_STATES, messages(list(range(1000)), stamps))
    segments.add(IMU, messages([k if k < 400 else max(k, 400 + late) for k in range(1000)], stamps))
    taken: dict[int, list[float]] = {}
    for rows in segments.rows(END):
        taken.setdefault(rows.segment, []).extend(rows.all_of(IMU, 1)[:, 0])
    assert taken == {0: list(range(500)), 1: list(range(500, 1000))}


@pytest.mark.parametrize("every", [1000, 700])
def test_late_messages_without_stamps_get_the_row_before_which_they_were_sent(every: int) -> None:
    """Switch messages precede their joint states by 0.1 ms. Those sent in 5 s to 8 s are received at 8 s."""
    stamp = np.arange(0, 15_000, 5, dtype=np.int64)
    sent = stamp * MS - MS // 10
    arrived = np.where((stamp >= 5000) & (stamp < 8000), 8000 * MS - MS // 10, sent)
    segments, taken = Segments(), []
    for begin in range(0, 15_000, every):
        now = (begin + every) * MS
        rows = (stamp >= begin) & (stamp < begin + every)
        segments.add(JOINT_STATES, messages(list(stamp[rows]), list(stamp[rows])))
        received = (arrived >= begin * MS - MS // 10) & (arrived < now - MS // 10)
        values = {LABELLED: stamp[received, None].astype(np.float64)}
        blank = np.zeros(int(received.sum()), dtype=np.int64)
        segments.add(SWITCH, TopicMessages(arrived[received], sent[received], blank, values, leads=True))
        taken += list(segments.rows(now))
    for block in [*taken, *segments.rows(END)]:
        at, table = block.match(SWITCH)
        assert table is not None
        assert np.array_equal(block.stamp[at], table.values[LABELLED][:, 0] * MS)
        assert np.array_equal(block.stamp[at], block.stamp)
    assert segments.losses() == []


def test_messages_after_the_last_joint_states_are_lost() -> None:
    segments = Segments()
    segments.add(JOINT_STATES, messages(list(range(0, 100, 5)), list(range(0, 100, 5))))
    switch = messages(list(range(0, 200, 5)), [0] * 40)
    switch.leads = True
    segments.add(SWITCH, switch)
    assert sum(len(rows.stamp) for rows in segments.rows(END)) == 20
    # A bag may end between the last of them and its joint states.
    assert [int(loss.split()[0]) for loss in segments.losses()] == [19]
