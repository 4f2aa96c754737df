"""Check that a topic exists with the right type and QoS, and that rate, jitter and latency of its messages are good."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Indices, Integers
from bipedsim_ros.contract.evidence import Endpoint, Evidence, TopicEvidence
from bipedsim_ros.contract.finding import Findings, TopicReport
from bipedsim_ros.contract.robot_contract import TAKES, Contract, ExpectedTopic
from bipedsim_ros.wire import NAMING_S, NO_NAME, incompatible

RATE_TOLERANCE = 0.1
"""Maximum relative difference of the rate, as in controller_node."""
LOST = 0.01
"""Maximum fraction of missing states."""
JITTER = 0.5
"""Maximum deviation of 99 % of the stamps, as a fraction of the period."""
AGE = 2.0
"""Maximum age of a measurement relative to the joint states that follow it, in periods."""
LATENCY = 2.0
"""Maximum median latency of a message, in periods."""

# Stamps within a day of the arrival are from a wall clock.
_DAY_NS = 86_400_000_000_000


def check_sensor_topic(contract: Contract, evidence: Evidence, topic: ExpectedTopic, out: Findings) -> bool:
    """Check presence, type, QoS and stream of a sensor topic; return whether there are messages to evaluate."""
    report = out.of(topic.found_as)
    observed = evidence.topics.get(topic.found_as)
    if observed is None or (observed.publishers == () and not observed.messages):
        report.missing("topic", topic.msgtype, _where_else(evidence, topic))
        return False
    if not _check_type(observed, topic, report):
        return False
    _check_publishers(observed, topic, report)
    if not observed.messages:
        reason = "it has a publisher that is silent: is its driver active?"
        if any(end.node == NO_NAME for end in observed.publishers or ()):
            reason = (
                f"its publisher is {NO_NAME}: discovery is not complete, check again in {NAMING_S:g} s (one that was "
                "killed stays listed for 20 s)"
            )
        report.missing("messages", f"{contract.rate:g} a second", reason)
        return False
    if topic.frame:
        frames = observed.columns.frames
        report.judge(
            frames == (topic.frame,),
            "frame",
            ", ".join(repr(frame) for frame in frames),
            repr(topic.frame),
            "set frame_id of the broadcaster if it is the same frame by another name; otherwise give the measurement "
            "in that frame, or name the robot's own in robot.yaml",
        )
    if not topic.stamped:
        return _check_number(observed, evidence.topics.get(contract.joints.found_as), report)
    return _check_stamps(contract, observed, report)


def _check_number(observed: TopicEvidence, joints: TopicEvidence | None, report: TopicReport) -> bool:
    """Check that there is a message for each message of joint states; return whether they can be compared."""
    if joints is None or not len(joints):
        report.not_checked("rate", "needs joint states")
        return True
    share = len(observed) / len(joints)
    return report.measure(
        abs(share - 1.0) <= RATE_TOLERANCE,
        "rate",
        f"{share:.3g} messages for each of the joint states",
        "1",
        "publish it before every message of joint states",
    )


def check_ages(contract: Contract, evidence: Evidence, out: Findings) -> None:
    """Check that IMU and wrenches are about as recent as the joint states that follow them."""
    joints = evidence.topics[contract.joints.found_as]
    times, stamps = np.array(joints.sent), joints.columns.stamp
    for topic in contract.sensors[1:]:
        observed = evidence.read(topic)
        if observed is None:
            continue
        before = np.searchsorted(np.array(observed.sent), times, side="right") - 1
        age = (stamps - observed.columns.stamp[np.maximum(before, 0)])[before >= 0] * 1e-9
        if not len(age):
            continue
        typical, period = float(np.median(age)), 1.0 / contract.rate
        out.of(topic.found_as).measure(
            -AGE * period <= typical <= AGE * period,
            "age",
            f"{_seconds(typical)} older than the joint states (median)",
            f"within {_seconds(AGE * period)}",
            "stamp all sensors by the same clock, when they measure" if abs(typical) > 1.0 else "publish it more often",
        )


def check_command_topic(contract: Contract, evidence: Evidence, out: Findings) -> None:
    """Check the subscribers and the publishers of the command topic."""
    topic = contract.commands
    report = out.of(topic.found_as)
    observed = evidence.topics.get(topic.found_as)
    todo = f"start (activate) the {contract.takes} controller that takes {topic.msgtype}" + _takes_instead(
        contract, evidence
    )
    if observed is None:
        if evidence.live:
            report.missing("topic", "a node that takes commands", todo)
        else:
            report.not_checked("topic", "not in the bag")
        return
    if not _check_type(observed, topic, report):
        return
    if observed.subscriptions is None:
        report.not_checked("listeners", "a bag does not say who listens")
    elif not observed.subscriptions:
        report.missing("listeners", "a node that takes commands", todo)
    else:
        report.ok("listeners", _nodes(observed.subscriptions))
        reasons = {incompatible(topic.controller, end.qos): end.node for end in observed.subscriptions}
        bad = {reason: node for reason, node in reasons.items() if reason}
        report.judge(
            not bad,
            "QoS",
            "; ".join(f"{node}: {reason}" for reason, node in bad.items()) or "compatible",
            "a subscription that a reliable, volatile publisher serves",
            "change the subscription of the effort controller",
        )
    senders = observed.publishers
    if senders is not None and len(senders) > 1:
        report.differs("senders", _nodes(senders), "one at most", "stop all controllers but one")


def _takes_instead(contract: Contract, evidence: Evidence) -> str:
    """Return a hint at other kinds of commands for which the robot has a topic, or an empty text."""
    prefix = contract.commands.found_as.removesuffix(contract.commands.name)
    kinds = [kind for kind, row in TAKES.items() if kind != contract.takes and prefix + row.name in evidence.others]
    return f"; there are topics for others: --takes {' or '.join(kinds)}" if kinds else ""


def _check_type(observed: TopicEvidence, topic: ExpectedTopic, report: TopicReport) -> bool:
    return report.judge(
        observed.types == (topic.msgtype,),
        "type",
        ", ".join(observed.types),
        topic.msgtype,
        "let the robot use that type, or remap the topic; two types on one topic never meet",
    )


def _check_publishers(observed: TopicEvidence, topic: ExpectedTopic, report: TopicReport) -> None:
    if observed.publishers is None:
        report.not_checked("QoS", "the bag does not say what was offered")
        return
    if len(observed.publishers) > 1:
        report.differs("publishers", _nodes(observed.publishers), "one", "stop or remap all but the robot's")
    reasons = {incompatible(end.qos, topic.controller) for end in observed.publishers} - {""}
    offered = ", ".join(sorted({f"{end.qos.reliability} {end.qos.durability}" for end in observed.publishers}))
    report.judge(
        not reasons,
        "QoS",
        "; ".join(sorted(reasons)) or offered,
        f"at least {topic.controller.reliability} {topic.controller.durability}",
        "the controller will receive nothing: publish with that quality of service",
    )


def rising(stamps: Integers) -> Indices:
    """Return the rows whose stamp exceeds all earlier ones, so that each state occurs once."""
    highest = np.maximum.accumulate(stamps)
    return np.flatnonzero(np.concatenate([[True], highest[1:] > highest[:-1]]))


def _check_stamps(contract: Contract, observed: TopicEvidence, report: TopicReport) -> bool:
    """Check stamps, rate, jitter, losses and latency; return whether time advances in the stream."""
    period = 1.0 / contract.rate
    stamps = observed.columns.stamp
    if not stamps.any() and len(stamps) > 1:
        report.differs(
            "stamps", "all zero", "the time of the measurement", "fill header.stamp; controllers reckon by it"
        )
        return False
    rows = rising(stamps)
    if len(rows) < 3:
        report.differs(
            "stamps",
            f"stand at {stamps[-1] * 1e-9:.3f} s ({len(stamps)} messages)",
            "time that passes",
            "simulators hold the robot until the first command: start a controller, and check again",
        )
        return False
    backwards = int((np.diff(stamps) < 0).sum())
    report.judge(
        backwards == 0,
        "stamps",
        f"run back {backwards} times" if backwards else "rising",
        "rising",
        "one publisher, one clock: every jump back resets the controller",
    )
    steps = np.diff(stamps[rows]) * 1e-9
    measured = float(np.median(steps))
    good_rate = report.measure(
        abs(measured / period - 1.0) <= RATE_TOLERANCE,
        "rate",
        f"{1.0 / measured:.1f} Hz",
        f"{contract.rate:g} Hz",
        f"set the robot's update_rate, or run the controller with rate:={1.0 / measured:.0f}",
    )
    if good_rate:
        # Losses are computed from the total time, because a late loop that catches up has lost nothing.
        lost = max(0.0, 1.0 - len(steps) * measured / float(steps.sum()))
        report.measure(
            lost <= LOST,
            "gaps",
            f"{lost:.2%} of the states missing",
            f"at most {LOST:.0%}",
            "the publisher skips, or the network loses: look at its load, and at the reliability of the topic",
        )
        # Whole periods are subtracted, because missing states are not jitter.
        off = steps - measured * np.maximum(1.0, np.round(steps / measured))
        jitter = float(np.quantile(np.abs(off), 0.99)) / measured
        send_intervals = np.diff(np.array(observed.sent)[rows]) * 1e-9
        report.measure(
            jitter <= JITTER,
            "jitter",
            f"stamps {jitter:.1%} of a period (p99); sent {_seconds(float(np.median(send_intervals)))} apart "
            f"(p99 {_seconds(float(np.quantile(send_intervals, 0.99)))})",
            f"stamps at most {JITTER:.0%}",
            "give the robot's loop a real-time priority, or stamp when it measures and not when it publishes",
        )
    _check_latency(np.array(observed.received)[rows] - stamps[rows], period, report)
    return True


def _check_latency(delay_ns: Integers, period: float, report: TopicReport) -> None:
    if abs(float(np.median(delay_ns))) > _DAY_NS:
        report.not_checked("latency", "stamps are of a simulated clock")
        return
    delay = delay_ns * 1e-9
    typical, high = float(np.median(delay)), float(np.quantile(delay, 0.99))
    limit = LATENCY * period
    report.measure(
        -limit <= typical <= limit,
        "latency",
        f"{_seconds(typical)} (p99 {_seconds(high)})",
        f"at most {_seconds(limit)}",
        "synchronise the clocks of both machines (PTP or NTP), and look for a filter or a bridge that delays",
    )


def _where_else(evidence: Evidence, topic: ExpectedTopic) -> str:
    same = sorted(name for name, msgtype in evidence.others.items() if msgtype == topic.msgtype)
    if not same:
        return f"no node publishes a {topic.msgtype}: start its driver or broadcaster"
    return f"of that type there are {', '.join(same)}: --remap {topic.name}:={same[0]}, if that is it"


def _nodes(ends: tuple[Endpoint, ...]) -> str:
    return ", ".join(end.node or "unknown node" for end in ends)


def _seconds(value: float) -> str:
    """Return a time as text in a suitable unit."""
    size = abs(value)
    if size >= 1.0:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if size >= 1e-3 else f"{1e6 * value:.0f} us"
