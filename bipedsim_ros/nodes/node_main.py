"""Start and end a node: signals, exit codes, and error messages instead of tracebacks."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import rclpy
import rclpy.logging
from rclpy.signals import SignalHandlerOptions

from bipedsim.control import controller_traceback, raising_controller
from bipedsim.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, BipedSimError, ConfigError
from bipedsim_ros.nodes.parameters import ParameterNode, Parameters
from bipedsim_ros.wire import node_environment, remove_left_memory

# The operating system frees the objects of a node that ends; a garbage collection would take 0.1 s.
atexit.register(gc.freeze)


class RunnableNode(Protocol):
    """Node whose :meth:`run` blocks until :meth:`stop`."""

    def run(self) -> int:
        """Run the node; return the exit code."""
        ...

    def stop(self) -> None:
        """End :meth:`run`; called from a signal handler."""
        ...

    def destroy_node(self) -> None:
        """Destroy the ROS node."""
        ...


class NodeProgram:
    """Program around a ROS node with checked parameters.

    Args:
        name: Name of the node.
    """

    def __init__(self, name: str) -> None:
        self._node = ParameterNode(name)
        self._parameters = Parameters(self._node, f"parameters of {name}")
        self._stop = False

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler."""
        self._stop = True

    def destroy_node(self) -> None:
        """Destroy the ROS node."""
        self._node.destroy_node()


def run_node(make: Callable[[], RunnableNode], args: Sequence[str] | None = None) -> int:
    """Create a node and run it until it ends or receives SIGINT or SIGTERM.

    Returns:
        Result of the node's ``run``; 2 if a parameter or argument is invalid; 1 after another error of bipedsim or of
        the controller.
    """
    name = re.sub(
        r"(?<=[a-z])(?=[A-Z])", "_", getattr(make, "__name__", "node")
    ).lower()  # SimNode is the node sim_node.
    argv = sys.argv if args is None else ["", *args]
    _ensure_log_folder()
    os.environ.update(node_environment(os.environ))
    left = remove_left_memory()
    try:
        rclpy.init(args=list(argv), signal_handler_options=SignalHandlerOptions.NO)
        unexpected = rclpy.utilities.remove_ros_args(list(argv))[1:]
        if unexpected:
            raise ConfigError(
                f"unexpected arguments {' '.join(unexpected)}; parameters are given as --ros-args -p name:=value"
            )
    except (ConfigError, RuntimeError) as error:
        # rclpy reports malformed --ros-args and parameter files as subclasses of RuntimeError.
        print(f"{name}: {_first_line(error)}", file=sys.stderr)
        rclpy.try_shutdown()
        return EXIT_USAGE
    node: RunnableNode | None = None

    def on_signal(_number: int, _frame: Any) -> None:
        if node is not None:
            node.stop()
            return
        # Compilation of kernels may take long. An exception would leave a partially constructed node, whose destruction
        # sometimes crashes. The flush fails if the signal has interrupted a print.
        with contextlib.suppress(RuntimeError):
            sys.stdout.flush()
        os._exit(EXIT_OK)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    # Warnings of libraries go to the same places as all messages: the terminal, the log and /rosout.
    warnings.showwarning = lambda message, *_: _logger(node, name).warning(str(message))
    try:
        if left:
            _logger(node, name).debug(f"removed {len(left)} parts of the shared memory of ended processes")
        node = make()
        return node.run()
    except ConfigError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except BipedSimError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except Exception as error:
        if not (raised := controller_traceback(error)):
            raise
        culprit = f"what the controller {raising_controller(error)} raised"
        _logger(node, name).debug(f"{culprit}, and what called it:\n{traceback.format_exc()}")
        message = f"{culprit}, from its own code on (with what called it: log_level debug)"
        print(f"{name}: {message}:\n{raised}", file=sys.stderr, end="")
        return EXIT_FAILED
    finally:
        # A process group and a launch file may both send SIGINT: the second one must not interrupt the clean-up.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()


def _logger(node: Any, name: str) -> Any:
    """Return the logger of a node; also works while the node is constructed."""
    ours = getattr(node, "_node", None)
    return rclpy.logging.get_logger(name) if ours is None else ours.get_logger()


def _ensure_log_folder() -> None:
    """Use a temporary folder for ROS's log files if the home directory is not writable; rclpy needs a log folder."""
    if "ROS_LOG_DIR" in os.environ or "ROS_HOME" in os.environ:
        return
    try:
        Path("~/.ros/log").expanduser().mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="ros-log-")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
