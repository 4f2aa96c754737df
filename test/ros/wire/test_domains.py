"""Which domains of this machine are taken, and when ports say it."""

from __future__ import annotations

import socket

import pytest
from ros_domains import Domain

from bipedsim_ros.wire.domains import LAST, free_domain, in_use, participants, ports, surely_empty
from bipedsim_ros.wire.network import network_environment

OURS = network_environment("localhost", {})


def test_a_domain_with_a_listener_is_in_use_and_not_proposed() -> None:
    quiet = Domain(40)
    quiet.release()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", ports(quiet.id)[2]))
        assert in_use(quiet.id)
        assert not surely_empty(quiet.id, OURS)
        assert free_domain(quiet.id - 1) != quiet.id
        assert participants(quiet.id) == 1
    assert surely_empty(quiet.id, OURS)
    assert free_domain(quiet.id - 1) == quiet.id
    assert free_domain(quiet.id) != quiet.id
    assert 1 <= free_domain(LAST) < LAST


@pytest.mark.parametrize(
    "env",
    [
        {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"},
        OURS | {"ROS_STATIC_PEERS": "10.0.0.2"},
        OURS | {"RMW_IMPLEMENTATION": "rmw_zenoh_cpp"},
    ],
)
def test_ports_say_nothing_of_other_machines_and_other_transports(env: dict[str, str]) -> None:
    assert not surely_empty(free_domain(60), env)
