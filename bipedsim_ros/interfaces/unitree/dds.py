"""Connect to the vendor's DDS topics with cyclonedds: publish states, receive commands and service requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.metadata import version

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import DDSException, InstanceState, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from bipedsim.errors import ConfigError
from bipedsim_ros.interfaces.unitree import idl
from bipedsim_ros.interfaces.unitree.switcher import Switcher

STATE, COMMAND = "rt/lowstate", "rt/lowcmd"
_REQUEST, _RESPONSE = "rt/api/motion_switcher/request", "rt/api/motion_switcher/response"
_WAIT_NS = 100_000_000
_MOST = 16
_MOST_ENDPOINTS = 1000
LIBRARY = f"cyclonedds {version('cyclonedds')}"
"""Version that the vendor's programs must use too: versions 0.10 and 11 do not discover each other."""


def configuration(interface: str) -> str:
    """Return cyclonedds' configuration for one network interface, or for automatic selection."""
    which = f'name="{interface}"' if interface else 'autodetermine="true"'
    return (
        '<CycloneDDS><Domain Id="any"><General><Interfaces>'
        f"<NetworkInterface {which}/>"
        "</Interfaces></General></Domain></CycloneDDS>"
    )


class Bus:
    """Vendor's topics of one machine; a separate thread handles commands and service requests.

    Args:
        domain: DDS domain.
        family: Family of message types, by name.
        interface: Network interface, such as ``lo``; empty for automatic selection.
        on_command: Called with each serialised message on rt/lowcmd, in order.
        failed: Called with an error message of the thread, which continues.
        switcher: Answers the service requests.

    Raises:
        ConfigError: The network interface does not exist, or cyclonedds cannot use it.
    """

    def __init__(
        self,
        domain: int,
        family: str,
        interface: str,
        on_command: Callable[[bytes], None],
        failed: Callable[[str], None],
        switcher: Switcher,
    ) -> None:
        self._on_command, self._failed, self._switcher = on_command, failed, switcher
        self._command_type, self._state_type = idl.TYPES[family]
        try:
            self._domain = Domain(domain, configuration(interface))
            self._participant = participant = DomainParticipant(domain)
        except DDSException as error:
            raise ConfigError(
                f"interface = 'unitree': no DDS on network interface {interface or 'of its own choice'!r}, domain "
                f"{domain} ({error.msg}); choose with --set unitree.nic=NAME --set unitree.domain=N"
            ) from error
        self._state = DataWriter(participant, Topic(participant, STATE, self._state_type))
        self._commands = DataReader(participant, Topic(participant, COMMAND, self._command_type))
        self._requests = DataReader(participant, Topic(participant, _REQUEST, idl.Request))
        self._responses = DataWriter(participant, Topic(participant, _RESPONSE, idl.Response))
        self._publications = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
        self._wait_set = WaitSet(participant)
        news = SampleState.NotRead | ViewState.Any | InstanceState.Any
        self._conditions = [ReadCondition(reader, news) for reader in (self._commands, self._requests)]
        for condition in self._conditions:
            self._wait_set.attach(condition)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rt/lowcmd", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def publish_state(self, data: bytes) -> None:
        """Publish a serialised rt/lowstate message."""
        self._state.write(self._state_type.of(data))

    def programs(self) -> int:
        """Return the number of connected writers of rt/lowcmd."""
        return len(self._commands.get_matched_publications())

    def strangers(self) -> set[str]:
        """Return other message types of writers on rt/lowcmd, which are therefore not received."""
        types = {name.replace("::", ".") for name in self._types(COMMAND)}
        return types - {self._command_type.__idl_typename__}

    def misfits(self) -> int:
        """Return the number of writers on rt/lowcmd with the same type name that are nevertheless not connected."""
        ours = self._command_type.__idl_typename__
        same = sum(name.replace("::", ".") == ours for name in self._types(COMMAND))
        return max(0, same - self.programs())

    def robots(self) -> int:
        """Return the number of writers of rt/lowstate, including this one."""
        return len(self._types(STATE))

    def _types(self, topic: str) -> list[str]:
        """Return the type of each present writer of a topic."""
        endpoints = self._publications.read(_MOST_ENDPOINTS)
        return [endpoint.type_name for endpoint in endpoints if getattr(endpoint, "topic_name", "") == topic]

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._wait_set.wait(_WAIT_NS)
                for sample in self._commands.take(_MOST):
                    if hasattr(sample, "data"):
                        self._on_command(sample.data)
                for request in self._requests.take(_MOST):
                    self._answer(request)
            except Exception as error:
                # A failure in one message must not prevent the handling of the others.
                self._failed(f"{type(error).__name__}: {error}")
                self._stop.wait(0.01)

    def _answer(self, request: object) -> None:
        if not isinstance(request, idl.Request):
            return
        identity = request.header.identity
        code, data = self._switcher.answer(identity.api_id, request.parameter)
        if not request.header.policy.noreply:
            header = idl.ResponseHeader(identity, idl.ResponseStatus(code))
            self._responses.write(idl.Response(header, data, []))
