"""All sensors of a robot: ideal measurements, and sensor errors if the hardware has any."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.dynamics import Joints
from bipedsim.model import HardwareParams, NoiseParams, OffsetParams, Robot, differs
from bipedsim.numerics import Array
from bipedsim.sim.additional_sensors import AdditionalSensors
from bipedsim.sim.height_scan import HeightScan
from bipedsim.sim.io import Observation
from bipedsim.sim.noise import Noise, Offsets
from bipedsim.sim.participant import Participant, Simulation
from bipedsim.sim.sensors import Sensors
from bipedsim.sim.tick import Tick


class SensorSuite(Participant):
    """Make the observation that the controller receives.

    Args:
        plant: The simulated robot, with its masses and the mounting of its IMU.
        hardware: Parameters of the hardware.
        control_dt: Length of a tick [s].
        seed: Seed of the noise.
        effort: (nu,) torque of the drives, live [N.m].
        tick: Sums over a control tick, live.
        placed: Joints whose poses the sensors share; see :class:`Sensors`.
        scan: The height scan, if it was asked for.
    """

    name = "sensors"

    def __init__(
        self,
        plant: Robot,
        hardware: HardwareParams,
        control_dt: float,
        seed: int,
        effort: Array,
        tick: Tick,
        placed: Joints,
        scan: HeightScan | None = None,
    ) -> None:
        self._sensors = Sensors(plant, placed)
        ideal = self._sensors.observation
        self._noise: Noise | None = None
        if differs(hardware, NoiseParams) or differs(hardware, OffsetParams):
            offsets = Offsets.of(hardware, plant)
            self._noise = Noise(hardware, ideal, control_dt, seed, offsets)
            self.observation.imus, self.observation.contact_switches = ideal.imus, ideal.contact_switches
        self._additional: AdditionalSensors | None = None
        if differs(hardware, NoiseParams) and (plant.imus or plant.contact_switches):
            real = self.observation
            real.imus, real.contact_switches = ideal.imus.copy(), ideal.contact_switches.copy()
            self._additional = AdditionalSensors(hardware, ideal, real, control_dt, seed)
        self._scan = scan
        if scan is not None:
            self.observation.height_scan, self.observation.scan_up = scan.heights, scan.up
        self._effort, self._contact, self._acceleration = effort, tick.result, tick.acceleration
        self._still = np.zeros(plant.model.nv)
        self._placed = -1

    def reset(self, sim: Simulation) -> None:
        """Draw the biases and the noise of a new run."""
        seed = sim.seed if sim.draw == 0 else None
        if self._noise is not None:
            self._noise.reset(seed)
        if self._additional is not None:
            self._additional.reset(seed)
        if self._scan is not None:
            self._scan.reset(sim.seed, sim.draw)

    def first(self, sim: Simulation) -> Observation:
        """Return the observation at the start of a run, before which the robot was at rest."""
        return self.measure(sim, self._still, True)

    def measure(self, sim: Simulation, acceleration: Array | None = None, first: bool = False) -> Observation:
        """Return the observation at the end of a tick; the next call overwrites it.

        Args:
            sim: The simulation.
            acceleration: (nv,) mean acceleration; that of the tick by default.
            first: Whether it is the first observation of a run.
        """
        self._placed = sim.step_count
        a = self._acceleration if acceleration is None else acceleration
        ideal = self._sensors.measure(sim.t, sim.q, sim.v, a, self._effort, self._contact)
        if self._scan is not None:
            self._scan.measure(sim.q, first)
        if self._additional is not None:
            self._additional.measure(first)
        return ideal if self._noise is None else self._noise.measure(first)

    def soles(self, sim: Simulation) -> tuple[Array, Array]:
        """Return the poses of the soles (K, 7) and the CoP of all feet (3,), NaN in the air, in the world."""
        if self._placed != sim.step_count:
            self._sensors.place(sim.q)
            self._placed = sim.step_count
        return self._sensors.force_plates(self._contact, sim.dynamics.ground_axes)

    @property
    def observation(self) -> Observation:
        """The last observation; live."""
        return self._sensors.observation if self._noise is None else self._noise.observation

    @property
    def height_points(self) -> Array | None:
        """Points (S, 2) of the height scan in the heading frame of the base [m]; None without one."""
        return None if self._scan is None else self._scan.points

    def state(self) -> dict[str, Any]:
        """Return a copy of the last measurement and of the state of the noise."""
        noise = None if self._noise is None else self._noise.state()
        scan = None if self._scan is None else self._scan.state()
        additional = None if self._additional is None else self._additional.state()
        return {"ideal": self._sensors.observation.copy(), "noise": noise, "scan": scan, "additional": additional}

    def set_state(self, state: dict[str, Any], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        self._sensors.restore(sim.q, state["ideal"])
        self._placed = sim.step_count
        if self._noise is not None:
            self._noise.set_state(state["noise"])
        if self._scan is not None:
            self._scan.set_state(state["scan"])
        if self._additional is not None:
            self._additional.set_state(state["additional"])
