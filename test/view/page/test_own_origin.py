"""Which pages may use the WebSocket of a page: only its own, over real sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

import viser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.view.page import Page
from bipedsim.view.page.own_origin import refused

ATTACKER = "evil.example"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    made = Page(load_robot("biped14"), Ground.flat(), port=0)
    yield made
    made.close()


def opened(page: Page, host: str, origin: str | None) -> Any:
    """Open the WebSocket as a browser does that takes ``host`` for the name of this machine."""
    with socket.create_connection(("127.0.0.1", page.port)) as one:
        protocols: Any = [f"viser-v{viser.__version__}"]
        with connect(f"ws://{host}:{page.port}", sock=one, origin=origin, subprotocols=protocols) as found:  # type: ignore[arg-type]
            return found.recv(timeout=240.0)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", socket.gethostname()])
def test_a_page_of_the_server_is_let_in(page: Page, host: str) -> None:
    assert opened(page, host, f"http://{host}:{page.port}")


def test_a_program_that_is_no_browser_is_let_in(page: Page) -> None:
    assert opened(page, "localhost", None)


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1", f"http://{ATTACKER}"),
        ("127.0.0.1", "http://127.0.0.1:1"),  # of another server of this machine
        ("127.0.0.1", "null"),  # of a file, or of a frame without an origin
        ("localhost", "http://localhost.evil.example:{port}"),
        (ATTACKER, f"http://{ATTACKER}:{{port}}"),  # its name resolves to this server: DNS rebinding
    ],
)
def test_a_page_of_somebody_else_is_refused(page: Page, host: str, origin: str, capfd: Any) -> None:
    with pytest.raises(InvalidStatus) as error:
        opened(page, host, origin.format(port=page.port))
    assert error.value.response.status_code == 403
    assert origin.format(port=page.port).removeprefix("http://").split(":")[0] in capfd.readouterr().err


def test_a_name_at_which_it_listens_is_its_own() -> None:
    assert not refused("http://robot.lab:8080", "robot.lab:8080", "robot.lab")
    assert refused("http://robot.lab:8080", "robot.lab:8080", "0.0.0.0")
    assert not refused("http://[::1]:8080", "[::1]:8080", "127.0.0.1")
    assert not refused("http://192.168.1.7:9000", "192.168.1.7:9000", "0.0.0.0")
    assert refused("http://[", "[", "127.0.0.1"), "not even an address"
