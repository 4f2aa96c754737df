"""Provide the standard services and the action for simulators (simulation_interfaces), if that package is installed.

They exist in addition to sim_node's own services. ``get_simulator_features`` lists the supported features. The version
of Jazzy (1.5) and the newest version (2.1) are supported.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin
from rclpy.action import ActionServer, CancelResponse
from rclpy.node import Node

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.recording.bag import NS_PER_S
from bipedsim.sim import Simulator
from bipedsim_ros.loop import SimLoop, in_own_axes
from bipedsim_ros.nodes.simulate_steps import simulate_steps
from bipedsim_ros.wire import WORLD_FRAME

PACKAGE = "simulation_interfaces"
FEATURES = (
    *("ENTITY_CATEGORIES", "ENTITY_STATE_GETTING", "ENTITY_STATE_SETTING", "ENTITY_INFO_GETTING"),
    *("SIMULATION_RESET", "SIMULATION_STATE_GETTING", "SIMULATION_STATE_SETTING", "SIMULATION_STATE_PAUSE"),
    *("STEP_SIMULATION_SINGLE", "STEP_SIMULATION_MULTIPLE", "STEP_SIMULATION_ACTION"),
)
"""Supported features, by the names of SimulatorFeatures."""
CUSTOM_INFO = (
    "bipedsim: a reset takes time and state together; the robot's pose and twist can be set at t = 0; objects come "
    "from the scenario; docs/ros_interface.md"
)
_NO_SPAWNING = "entities come from the scenario (docs/objects.md): nothing is spawned or deleted while the node runs"


def offer(node: Node, sim: Simulator, loop: SimLoop) -> SimulationServices | None:
    """Create the services on a node; return None if their package is not installed."""
    if importlib.util.find_spec(PACKAGE) is None:
        return None
    return SimulationServices(node, sim, loop)


class _RefusalError(Exception):
    """Request that is answered with an error code and a reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class SimulationServices:
    """Standard services; a separate thread serves them and delegates all access to the simulation to the loop.

    Args:
        node: Node in whose namespace the services are: /get_entities, /r1/get_entities.
        sim: The simulator.
        loop: Loop that steps the simulator.
    """

    def __init__(self, node: Node, sim: Simulator, loop: SimLoop) -> None:
        self._node, self._sim, self._loop = node, sim, loop
        self._types, self._messages = (importlib.import_module(f"{PACKAGE}.{kind}") for kind in ("srv", "msg"))
        self._codes = self._messages.Result
        self._states = self._messages.SimulationState
        self._robot = sim.robot.name
        self._stopped = False
        for serve in (
            *(self._get_simulation_state, self._set_simulation_state, self._step_simulation, self._reset_simulation),
            *(self._get_entities, self._get_entities_states, self._get_entity_state, self._set_entity_state),
            self._get_entity_info,
        ):
            self._create(serve.__name__.removeprefix("_"), self._answered(serve))
        for name in ("spawn_entity", "delete_entity"):
            self._create(name, self._answered(self._refuse))
        self._create("get_simulator_features", self._get_simulator_features)
        kind = importlib.import_module(f"{PACKAGE}.action").SimulateSteps
        self._action = ActionServer(
            node,
            kind,
            "simulate_steps",
            self._simulate_steps,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
        )
        self._feedback, self._outcome = kind.Feedback, kind.Result

    def destroy(self) -> None:
        """Destroy the action server, which the node does not manage."""
        self._action.destroy()

    def _create(self, name: str, serve: Callable[[Any, Any], Any]) -> None:
        kind = getattr(self._types, "".join(word.capitalize() for word in name.split("_")))
        self._node.create_service(kind, name, serve)

    def _answered(self, serve: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
        def answer(request: Any, response: Any) -> Any:
            try:
                response.result.result = self._codes.RESULT_OK
                serve(request, response)
            except _RefusalError as refusal:
                response.result.result, response.result.error_message = refusal.code, str(refusal)
            return response

        return answer

    def _ask(self, action: Callable[[], str], code: int | None = None) -> str:
        """Execute an action in the loop and return its message; refuse with ``code`` if it fails."""
        done, message = self._loop.requests.ask(action)
        if not done:
            raise _RefusalError(self._codes.RESULT_OPERATION_FAILED if code is None else code, message)
        return message

    # Services for the simulation.

    def _get_simulator_features(self, _request: Any, response: Any) -> Any:
        known = self._messages.SimulatorFeatures
        response.features.features = [getattr(known, name) for name in FEATURES]
        response.features.custom_info = CUSTOM_INFO
        return response

    def _state(self) -> int:
        """Return the state in the terms of the standard; a simulation that waits for its first command is playing."""
        state = self._loop.state
        if state == "paused" and not (self._stopped and self._sim.t == 0.0):
            return int(self._states.STATE_PAUSED)
        return int(self._states.STATE_PLAYING if state in ("running", "waiting") else self._states.STATE_STOPPED)

    def _get_simulation_state(self, _request: Any, response: Any) -> None:
        response.state.state = self._state()

    def _set_simulation_state(self, request: Any, response: Any) -> None:
        wanted, kind = request.state.state, type(response)
        if wanted == self._state():
            raise _RefusalError(kind.ALREADY_IN_TARGET_STATE, "the simulation is in this state")
        if wanted == self._states.STATE_QUITTING:
            self._loop.stop()
        elif wanted == self._states.STATE_STOPPED:
            self._ask(self._reset_and_pause, kind.STATE_TRANSITION_ERROR)
            self._stopped = True
        elif wanted == self._states.STATE_PAUSED:
            if self._loop.state != "paused":
                self._ask(self._loop.pause, kind.STATE_TRANSITION_ERROR)
            self._stopped = False
        elif wanted == self._states.STATE_PLAYING:
            self._ask(self._loop.resume, kind.STATE_TRANSITION_ERROR)
            self._stopped = False
        else:
            raise _RefusalError(self._codes.RESULT_FEATURE_UNSUPPORTED, f"there is no way to state {wanted}")

    def _reset_and_pause(self) -> str:
        self._loop.reset()
        return self._loop.pause()

    def _step_simulation(self, request: Any, _response: Any) -> None:
        for _ in range(request.steps):
            self._ask(self._loop.single_step)

    async def _simulate_steps(self, goal: Any) -> Any:
        outcome, steps = self._outcome(), goal.request.steps
        codes = self._codes

        def publish_feedback(completed: int, remaining: int) -> None:
            goal.publish_feedback(self._feedback(completed_steps=completed, remaining_steps=remaining))

        def step() -> None:
            self._ask(self._loop.single_step)

        try:
            taken = await simulate_steps(
                steps, step, publish_feedback, lambda: goal.is_cancel_requested, self._node.executor
            )
        except _RefusalError as refusal:
            goal.abort()
            outcome.result.result, outcome.result.error_message = refusal.code, str(refusal)
        else:
            if taken < steps:
                goal.canceled()
                outcome.result.result = codes.RESULT_OPERATION_FAILED
                outcome.result.error_message = f"cancelled after {taken} of {steps} steps"
            else:
                goal.succeed()
                outcome.result.result = codes.RESULT_OK
        return outcome

    def _reset_simulation(self, request: Any, response: Any) -> None:
        kind = type(request)
        both = kind.SCOPE_TIME | kind.SCOPE_STATE
        if request.scope not in (kind.SCOPE_DEFAULT, kind.SCOPE_ALL) and request.scope & both != both:
            raise _RefusalError(
                self._codes.RESULT_FEATURE_UNSUPPORTED,
                "time and state are reset together: SCOPE_ALL, or SCOPE_TIME | SCOPE_STATE",
            )
        self._ask(self._reset_and_pause if self._loop.state == "paused" else self._loop.reset)

    # Services for the entities.

    def _names(self) -> tuple[str, ...]:
        objects = self._sim.objects
        return (self._robot, *(() if objects is None else objects.names))

    def _named(self, entity: str) -> str:
        if entity not in self._names():
            known = ", ".join(self._names())
            raise _RefusalError(self._codes.RESULT_NOT_FOUND, f"there is no entity {entity!r}; there are {known}")
        return entity

    def _category(self, entity: str) -> int:
        known = self._messages.EntityCategory
        return int(known.CATEGORY_ROBOT if entity == self._robot else known.CATEGORY_DYNAMIC_OBJECT)

    def _filtered(self, filters: Any) -> Iterator[str]:
        if filters.tags.tags or filters.bounds.type:
            raise _RefusalError(
                self._codes.RESULT_FEATURE_UNSUPPORTED, "entities are found by name and category, not by tags or bounds"
            )
        try:
            pattern = re.compile(filters.filter)
        except re.error as error:
            raise _RefusalError(
                self._codes.RESULT_OPERATION_FAILED, f"{filters.filter!r} is no regular expression: {error}"
            ) from error
        categories = {accepted.category for accepted in filters.categories}
        for name in self._names():
            if pattern.search(name) and (not categories or self._category(name) in categories):
                yield name

    def _entity_states(self) -> dict[str, Array]:
        """Return pose and twist (13,) of every entity at one time, the twist in the entity's axes, and the time `t`."""
        states: dict[str, Array] = {}

        def read() -> str:
            truth = self._sim.ground_truth()
            states[self._robot] = np.concatenate([truth.pose_world_base, truth.twist_base])
            if self._sim.objects is not None:
                states.update(zip(self._sim.objects.names, self._sim.objects.states(), strict=True))
            states["t"] = np.array([self._sim.t])
            return ""

        self._ask(read)
        return states

    def _filled(self, message: Any, state: Array, t: float) -> Any:
        seconds, rest = divmod(round(t * NS_PER_S), NS_PER_S)
        message.header.stamp.sec, message.header.stamp.nanosec = seconds, rest
        message.header.frame_id = WORLD_FRAME
        rotation = pin.Quaternion(state[3:7]).matrix()
        _fill(message.pose.position, state[:3])
        _fill(message.pose.orientation, state[3:7])
        _fill(message.twist.linear, rotation @ state[7:10])
        _fill(message.twist.angular, rotation @ state[10:13])
        return message

    def _get_entities(self, request: Any, response: Any) -> None:
        response.entities = list(self._filtered(request.filters))

    def _get_entities_states(self, request: Any, response: Any) -> None:
        response.entities = list(self._filtered(request.filters))
        states = self._entity_states()
        kind = self._messages.EntityState
        t = float(states["t"][0])
        response.states = [self._filled(kind(), states[name], t) for name in response.entities]

    def _get_entity_state(self, request: Any, response: Any) -> None:
        name, states = self._named(request.entity), self._entity_states()
        self._filled(response.state, states[name], float(states["t"][0]))

    def _get_entity_info(self, request: Any, response: Any) -> None:
        response.info.category.category = self._category(self._named(request.entity))

    def _set_entity_state(self, request: Any, response: Any) -> None:
        if self._named(request.entity) != self._robot:
            raise _RefusalError(
                self._codes.RESULT_FEATURE_UNSUPPORTED, f"{request.entity} begins where the scenario has put it"
            )
        if self._sim.t != 0.0:
            raise _RefusalError(
                self._codes.RESULT_INCORRECT_STATE,
                f"t = {self._sim.t:.6f} s: the robot can be put somewhere at t = 0 alone, because recordings and "
                "replays know where a run begins; set STATE_STOPPED or reset first",
            )
        state, frame = request.state, request.state.header.frame_id
        if frame not in ("", WORLD_FRAME, "world"):
            raise _RefusalError(
                self._codes.RESULT_FEATURE_UNSUPPORTED, f"frame_id = {frame!r}: states are taken in {WORLD_FRAME} alone"
            )
        values = {
            "pose": np.array([*_numbers(state.pose.position, "xyz"), *_numbers(state.pose.orientation, "xyzw")]),
            "twist": np.array([*_numbers(state.twist.linear, "xyz"), *_numbers(state.twist.angular, "xyz")]),
        }
        # Older versions of the service have no flags and always set both.
        wanted = {name: value for name, value in values.items() if getattr(request, f"set_{name}", True)}
        self._ask(lambda: self._begin(**wanted), type(response).INVALID_POSE)

    def _begin(self, pose: Array | None = None, twist: Array | None = None) -> str:
        """Set the robot's initial pose (7,) and twist (6,), in world axes; None leaves the value unchanged."""
        sim = self._sim
        if not sim.robot.free_flyer:
            raise ConfigError(f"{self._robot} is fixed to the ground")
        q, v = sim.q.copy(), sim.v.copy()
        if pose is not None:
            in_own_axes(pose[3:], np.zeros(6), "orientation")
            q[:7] = pose
        if twist is not None:
            v[:6] = in_own_axes(q[3:7], twist, "orientation")
        return self._loop.begin_at(q, v)

    def _refuse(self, _request: Any, _response: Any) -> None:
        raise _RefusalError(self._codes.RESULT_FEATURE_UNSUPPORTED, _NO_SPAWNING)


def _fill(message: Any, values: Array) -> None:
    for name, value in zip("xyzw", values.tolist(), strict=False):
        setattr(message, name, value)


def _numbers(message: Any, names: str) -> list[float]:
    return [float(getattr(message, name)) for name in names]
