"""Starting and ending a node: signals, exit codes, and messages instead of tracebacks."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
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

# What a node holds at its end goes with the process; to look through it for garbage takes 0.1 s.
atexit.register(gc.freeze)


class RunnableNode(Protocol):
    """A node whose :meth:`run` blocks until :meth:`stop`."""

    def run(self) -> int:
        """Work; return the exit code."""
        ...

    def stop(self) -> None:
        """End :meth:`run`; called from a signal handler."""
        ...

    def destroy_node(self) -> None:
        """Release the node."""
        ...


def run_node(make: Callable[[], RunnableNode], args: Sequence[str] | None = None) -> int:
    """Make a node and run it until it ends, or SIGINT or SIGTERM comes.

    Returns:
        What the node's ``run`` returned; 2 if a parameter or argument was wrong; 1 after any other error that bipedsim
        knows.
    """
    name = getattr(make, "__name__", "node")
    argv = sys.argv if args is None else ["", *args]
    _ensure_log_folder()
    try:
        rclpy.init(args=list(argv), signal_handler_options=SignalHandlerOptions.NO)
        left = rclpy.utilities.remove_ros_args(list(argv))[1:]
        if left:
            raise ConfigError(
                f"unexpected arguments {' '.join(left)}; parameters are given as --ros-args -p name:=value"
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
        # Compiling kernels may still take a while, and an exception would leave a half-made node whose destruction
        # crashes now and then. The flush fails where the signal has interrupted a print.
        with contextlib.suppress(RuntimeError):
            sys.stdout.flush()
        os._exit(EXIT_OK)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    # What a library warns of belongs where everything else is told: on the terminal, in the log and on /rosout.
    warnings.showwarning = lambda message, *_: _logger(node, name).warning(str(message))
    try:
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
        who = f"what the controller {raising_controller(error)} raised"
        _logger(node, name).debug(f"{who}, and what called it:\n{traceback.format_exc()}")
        said = f"{who}, from its own code on (with what called it: log_level debug)"
        print(f"{name}: {said}:\n{raised}", file=sys.stderr, end="")
        return EXIT_FAILED
    finally:
        # A group and a launch file may both send SIGINT: the second one must not cut the clean-up short.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()


def _logger(node: Any, name: str) -> Any:
    """Return the logger of a node, also while the node is made."""
    ours = getattr(node, "_node", None)
    return rclpy.logging.get_logger(name) if ours is None else ours.get_logger()


def _ensure_log_folder() -> None:
    """Send ROS's log files to the temporary folder where the home cannot hold them: rclpy does not start without."""
    if "ROS_LOG_DIR" in os.environ or "ROS_HOME" in os.environ:
        return
    try:
        Path("~/.ros/log").expanduser().mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="ros-log-")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
