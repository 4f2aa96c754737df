"""The discrete states of a run, the gait that they are, cycles and invariant sets: counted, and on synthetic words."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from math import comb
from pathlib import Path

import numpy as np
import pytest
from gait_support import AIR, FEET, HIT, HIT_SLIDE, HOP, NAMED, RUN, SLIDE, STICK, WALK, spelled_states
from hypothesis import given, strategies as st
from picture_support import Drawn

from bipedsim.analysis import without_bounces
from bipedsim_studies.gait_modes.cycle import find_cycle
from bipedsim_studies.gait_modes.gait import gait_report
from bipedsim_studies.gait_modes.picture import plot
from bipedsim_studies.gait_modes.sequence import Entry, ModeSequence, foot_states, transitions
from bipedsim_studies.gait_modes.states import (
    IMPACTS,
    FootState,
    State,
    all_states,
    count_states,
    is_impact,
    state_name,
    state_symbol,
)


def sequence(word: list[tuple[State, float]]) -> ModeSequence:
    """Return states and how long each lasts [s] as a sequence of 1 ms rows."""
    counts = [max(1, round(1e3 * duration)) for _, duration in word]
    states = np.repeat(np.array([state for state, _ in word], dtype=np.int64), counts, axis=0)
    return ModeSequence(FEET, 1e-3 * np.arange(len(states) + 1), states, np.arange(len(states)))


def spelled(names: list[str], phase: float = 0.4) -> ModeSequence:
    """Return a sequence of the paper's states, every phase as long as the others, every impact of one row."""
    return sequence([(NAMED[name], 1e-3 if name[0] == "I" else phase) for name in names])


def mirrored(modes: ModeSequence) -> ModeSequence:
    return ModeSequence(modes.feet, modes.t, modes.states[:, ::-1], modes.rows)


@pytest.mark.parametrize("feet", [1, 2, 3, 4])
def test_states_are_as_many_as_eq_44_says(feet: int) -> None:
    states = all_states(feet)
    assert len(set(states)) == len(states) == count_states(feet) == 5**feet
    impacts = Counter(sum(foot in IMPACTS for foot in state) for state in states)
    assert impacts == {i: 2**i * 3 ** (feet - i) * comb(feet, i) for i in range(feet + 1)}
    assert [is_impact(state) for state in states] == sorted(is_impact(state) for state in states)


def test_two_feet_have_25_states_and_each_has_names_of_its_own() -> None:
    states = all_states(2)
    assert len(states) == 25
    assert len({state_symbol(state, FEET) for state in states}) == 25
    assert len({state_name(state, FEET) for state in states}) == 25
    assert {name: state_symbol(state, FEET) for name, state in NAMED.items()} == {name: name for name in NAMED}
    assert state_name(NAMED["Irs"], FEET) == "left stick; right impact, stick"
    # This holds for any names and order of the feet.
    assert state_symbol((STICK, AIR), ("right", "left")) == "sr"
    assert len({state_symbol(state, ("fore", "aft")) for state in states}) == 25


@pytest.mark.parametrize(
    ("word", "gait", "steps", "flights"),
    [(WALK, "walking", 20, 0), (HOP, "hopping", 0, 10), (RUN, "running", 0, 20)],
)
def test_the_three_gaits_of_eq_45(word: tuple[str, ...], gait: str, steps: int, flights: int) -> None:
    around = ["dss"] if gait == "walking" else []
    modes = spelled([*around, *(10 * word), *around])
    for way in (modes, mirrored(modes)):
        report = gait_report(way)
        assert report.gaits == (gait,)
        (stretch,) = [stretch for stretch in report.stretches if stretch.impacts]
        # A run from standing begins with a landing that has no flight phase before it.
        assert (stretch.steps, stretch.flights) == (steps, flights)
        assert stretch.sets == ("CVIS-UIS" if gait == "hopping" else "CVIS")
        assert stretch.cycle is not None
        assert stretch.cycle.turns >= 9
        assert len(stretch.cycle.states) == len(word)
    report = gait_report(modes)
    cycle = next(stretch.cycle for stretch in report.stretches if stretch.cycle)
    assert tuple(spelled_states(cycle.states)) in {word[i:] + word[:i] for i in range(len(word))}


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_with_bounces_slips_and_uneven_times_is_a_walk(seed: int) -> None:
    """Every landing bounces, every foot may slip before it lifts, impacts may slide."""
    random = np.random.default_rng(seed)
    word: list[tuple[State, float]] = [((STICK, STICK), 1.0)]
    for step in range(20):
        swing = step % 2

        def both(stance: FootState, other: FootState, swing: int = swing) -> State:
            return (other, stance) if swing == 0 else (stance, other)

        hit = HIT_SLIDE if random.random() < 0.3 else HIT
        word += [(both(STICK, SLIDE), 3e-3), (both(STICK, AIR), random.uniform(0.2, 0.9)), (both(STICK, hit), 2e-3)]
        word += [(both(STICK, AIR), random.uniform(0.01, 0.09)), (both(STICK, HIT), 2e-3)] * int(random.integers(0, 3))
        word += [(both(STICK, STICK), random.uniform(0.02, 0.3))]
    report = gait_report(sequence(word))
    assert report.verdict == "walking"
    assert sum(stretch.steps for stretch in report.stretches) == 20
    assert all(share < 0.1 for share in report.sliding)


def test_gaits_that_follow_each_other_are_told_apart() -> None:
    names = ["dss", *(4 * WALK), "sl", *(4 * ["f", "Ild", "sl"]), *(3 * ["f", "Ird", "sr", "f", "Ild", "sl"])]
    report = gait_report(spelled(names, 0.3))
    assert report.gaits == ("walking", "hopping", "running")
    assert report.verdict == "walking, hopping, running"


def test_a_rest_ends_a_gait_and_what_stays_is_named() -> None:
    walk = [(NAMED[name], 1e-3 if name[0] == "I" else 0.4) for name in (2 * WALK)]
    word = [*walk, (NAMED["dss"], 5.0), *walk, (NAMED["sl"], 1.0)]
    report = gait_report(sequence(word))
    assert [stretch.gaits for stretch in report.stretches] == [
        ("walking",),
        ("standing",),
        ("walking",),
        ("standing", "on left"),
    ]
    assert [stretch.sets for stretch in report.stretches] == ["CVIS", "FCIS", "CVIS", "UIS-FCIS"]
    assert len(gait_report(sequence(word), pause=6.0).stretches) == 2


@pytest.mark.parametrize(
    ("word", "verdict", "sets"),
    [
        ([("dss", 1.0)], "standing", "FCIS"),
        ([("f", 1.0)], "flight", "UIS"),
        ([("sl", 1.0)], "on left", "UIS-FCIS"),  # rocking on one foot
        ([("dss", 1.0), ("sl", 0.5), ("Irs", 0.001), ("dss", 1.0)], "step", "CVIS-FCIS"),  # the left one stays
        ([("sl", 0.5), ("Irs", 0.001), ("dss", 0.3)] * 3, "step, tapping", "CVIS-FCIS"),
        ([("dss", 1.0), ("f", 0.3), ("Ild", 0.001), ("sl", 1.0)], "leap", "CVIS-UIS"),
    ],
)
def test_what_is_no_gait_is_named_and_belongs_to_invariant_sets(
    word: list[tuple[str, float]], verdict: str, sets: str
) -> None:
    report = gait_report(sequence([(NAMED[name], duration) for name, duration in word]))
    assert report.gaits == ()
    assert set(verdict.split(", ")) <= set(report.verdict.split(", "))
    busy = [stretch for stretch in report.stretches if stretch.impacts] or report.stretches
    assert busy[0].sets == sets


def test_a_robot_that_moves_on_its_feet_is_unconstrained_too() -> None:
    """Remark 2 of the paper: constrained in the directions of the contacts, free in the others."""
    modes = spelled(["dss"])
    moving = 0.5 * np.sin(modes.t[:-1, None] * 10.0)
    assert gait_report(modes, joint_velocity=moving).stretches[0].sets == "UIS-FCIS"
    assert gait_report(modes, joint_velocity=1e-4 * moving).stretches[0].sets == "FCIS"
    assert gait_report(modes, joint_velocity=np.full_like(moving, np.nan)).stretches[0].sets == "FCIS"


contacts = st.lists(st.tuples(*[st.booleans()] * 2), min_size=2, max_size=60).map(np.array)


@given(contacts, st.lists(st.booleans(), min_size=60, max_size=60))
def test_impacts_are_where_feet_touch_down(contact: np.ndarray, slip: list[bool]) -> None:
    """Of a soft contact, which has no impulses."""
    sliding = np.column_stack([slip, slip[::-1]])[: len(contact)]
    none = np.zeros_like(contact)
    states = foot_states(contact, sliding, contact.astype(np.int64), none, none[:, 0])
    lands = np.zeros_like(contact)
    lands[1:] = contact[1:] & ~contact[:-1]
    quiet = ~lands.any(axis=1)
    quiet[0] = True
    expected = np.where(contact, np.where(sliding, SLIDE, STICK), AIR)
    assert (states[quiet] == expected[quiet]).all()
    assert np.isin(states[1:][lands[1:]], IMPACTS).all()
    assert not np.isin(states[0], IMPACTS).any()


@given(contacts, st.sampled_from([0.0, 2e-3, 5e-3, 0.1]))
def test_closing_bounces_closes_all_that_are_shorter_and_no_other(contact: np.ndarray, bounce: float) -> None:
    t = 1e-3 * np.arange(len(contact) + 1)
    closed = without_bounces(t, contact, bounce)
    assert (closed | ~contact).all()
    assert (without_bounces(t, closed, bounce) == closed).all()
    for k in range(2):
        down = np.flatnonzero(closed[:, k])
        assert all(t[b] - t[a + 1] >= bounce for a, b in pairwise(down.tolist()) if b > a + 1)
        changed = np.flatnonzero(closed[:, k] != contact[:, k])
        before = np.flatnonzero(contact[:, k])
        assert all(before[0] < i < before[-1] for i in changed)


@given(st.lists(st.sampled_from(list(product(FootState, repeat=2))), min_size=1, max_size=40))
def test_entries_hold_the_sequence_and_nothing_else(states: list[State]) -> None:
    modes = sequence([(state, 1e-3) for state in states])
    entries = modes.entries
    assert [entry.state for entry in entries for _ in range(entry.first, entry.last)] == states
    assert all(a.state != b.state for a, b in pairwise(entries))
    assert sum(entry.duration for entry in entries) == pytest.approx(modes.t[-1])
    assert sum(transitions(entries).values()) == len(entries) - 1
    report = gait_report(modes)
    assert sum(stretch.duration for stretch in report.stretches) == pytest.approx(modes.t[-1])
    assert sum(entry.duration for entry in report.entries) == pytest.approx(modes.t[-1])


@given(st.lists(st.sampled_from(list(NAMED)), min_size=1, max_size=6), st.integers(2, 6), st.integers(0, 5))
def test_a_word_that_is_repeated_is_a_cycle(word: list[str], turns: int, rest: int) -> None:
    shortest = next(p for p in range(1, len(word) + 1) if len(word) % p == 0 and word == word[:p] * (len(word) // p))
    text = word * turns + word[: min(rest, len(word) - 1)]
    entries = [Entry(0.1 * i, 0.1, NAMED[name], i, i + 1) for i, name in enumerate(text)]
    cycle = find_cycle(entries)
    assert cycle is not None
    assert len(cycle.states) == shortest
    assert cycle.turns == len(text) // shortest
    assert cycle.period == pytest.approx(0.1 * shortest)
    assert cycle.spread == pytest.approx(0.0, abs=1e-12)


def test_what_never_returns_has_no_cycle() -> None:
    assert find_cycle([Entry(float(i), 1.0, state, i, i + 1) for i, state in enumerate(all_states(2))]) is None
    assert find_cycle([]) is None


def test_the_picture_sets_the_names_of_states_in_a_font_with_different_l_and_i(tmp_path: Path) -> None:
    modes = spelled(["sl", "Ird", "sr", "Ild", "sl"])
    drawn = Drawn(lambda path: plot(modes, gait_report(modes), path), tmp_path)
    assert {"Ird", "Ild"} <= set(drawn.texts)
    assert "monospace" in drawn.font("Ild")
    assert "monospace" not in drawn.font("stick")


def test_the_picture_says_what_its_states_and_numbers_are(tmp_path: Path) -> None:
    modes = spelled(["sl", "Ird", "sr", "Ild", "sl"])
    drawn = Drawn(lambda path: plot(modes, gait_report(modes), path), tmp_path)
    assert {"sl   left stick; right detached", "Ild  left impact, stick; right detached"} <= set(drawn.texts)
    assert "on arrows how often, in circles visits (red: impacts)" in drawn.texts
