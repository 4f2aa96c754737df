"""Run the benchmark: all robots in all engines, and the step time over the number of vertices."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from bipedsim import __version__
from bipedsim.config import check
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines import (
    ENGINES,
    REFERENCE,
    Engine,
    EngineUnavailableError,
    engine_version,
    make_engine,
)
from bipedsim_studies.bench.events import event_pieces, measure_events
from bipedsim_studies.bench.hold import DAMPING, STIFFNESS, Hold
from bipedsim_studies.bench.measure import (
    UNTIMED_STEPS,
    Rest,
    block_times,
    measure_creep,
    measure_rest,
    record_torques,
    side_load,
    time_alternating,
)
from bipedsim_studies.bench.own import measure_motion, measure_scaling, motion_pieces, scaling_pieces
from bipedsim_studies.bench.settings import BenchSettings
from bipedsim_studies.bench.suites import measure_suites, suite_engines, suite_pieces

Row = dict[str, Any]


def pieces(settings: BenchSettings) -> int:
    """Return the maximum number of calls of ``tick`` by :class:`Bench`."""
    blocks = settings.blocks
    own_pieces = scaling_pieces(blocks) + motion_pieces(blocks) + event_pieces(blocks) if settings.own else 0
    engines = settings.engines or tuple(ENGINES)
    of_suites = sum(
        suite_pieces(suite_engines(load_robot(name), engines), settings.repetitions) for name in settings.robots
    )
    return len(settings.robots) * len(engines) * (1 + blocks) + of_suites + own_pieces


class Bench:
    """Run a benchmark. Results are plain data that can be written as JSON.

    Args:
        settings: Settings of the benchmark.
        tick: Receives a line of text after each piece of work, for a progress bar.

    Raises:
        ConfigError: A setting is out of range.
        UnknownNameError: An engine does not exist.
    """

    def __init__(self, settings: BenchSettings, tick: Callable[[str], None] = lambda text: None) -> None:
        check(settings, "options")
        self._settings = replace(settings, engines=settings.engines or tuple(ENGINES))
        self._tick = tick

    def report(self) -> dict[str, Any]:
        """Run all measurements and return the report."""
        settings = self._settings
        robots = [load_robot(name) for name in settings.robots]
        return {
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
            "versions": versions(settings.engines),
            "parameters": {
                **asdict(settings),
                "untimed_steps": UNTIMED_STEPS,
                "controller": f"static torques and PD; dt M^-1 Kd <= {DAMPING}, kp = {STIFFNESS:g}/s kd",
            },
            "robots": {robot.name: self._robot(robot) for robot in robots},
            "suites": {robot.name: self._suites(robot) for robot in robots} if settings.repetitions else {},
            "scaling": measure_scaling(settings.dt, settings.blocks, settings.steps, self._tick)
            if settings.own
            else {},
            "motion": measure_motion(settings.dt, settings.blocks, self._tick) if settings.own else {},
            "events": measure_events(settings.dt, settings.blocks, self._tick) if settings.own else {},
        }

    def _suites(self, robot: Robot) -> dict[str, dict[str, Row]]:
        s = self._settings
        return measure_suites(robot, suite_engines(robot, s.engines), s.dt, s.repetitions, self._tick)

    def _robot(self, robot: Robot) -> dict[str, Row]:
        """Measure a robot in all engines, and return one row per engine."""
        s = self._settings
        hold = Hold(robot, s.dt)
        load = side_load(robot, s.push_fraction)
        rows: dict[str, Row] = {}
        engines: dict[str, Engine] = {}
        rests: dict[str, Rest] = {}
        torques: dict[str, list[Array]] = {}
        for name in s.engines:
            spec = ENGINES[name]
            rows[name] = {"label": spec.label, "status": "ok", "note": spec.note}
            try:
                engine = make_engine(name, robot, s.dt)
                rests[name] = rest = measure_rest(engine, hold)
                creep = measure_creep(engine, hold, rest, load, s.creep_seconds)
                torques[name] = record_torques(engine, hold, rest, UNTIMED_STEPS + s.steps)
            except EngineUnavailableError as error:
                rows[name].update(status=error.status, note=str(error))
            except Exception as error:  # A failure of one engine must not stop the others.
                rows[name].update(status="failed", note=f"{type(error).__name__}: {error}")
            else:
                engines[name] = engine
                rows[name].update(
                    push_N=load,
                    rest_force_error_N=rest.force_error,
                    penetration_um=1e6 * rest.penetration,
                    creep_um_s=1e6 * creep.speed,
                    creep_um=1e6 * creep.displacement,
                    friction_used=creep.friction_used,
                    inside_cone=creep.friction_used < 1.0,
                )
            self._tick(f"{robot.name}: {name}")
        times = time_alternating(engines, rests, torques, s.blocks, lambda: self._tick(f"{robot.name}: step time"))
        for name, us in times.items():
            rows[name]["step_us"] = block_times(us)
            if REFERENCE in times:
                rows[name]["ratio_to_mujoco"] = float(us.min() / times[REFERENCE].min())
        for engine in engines.values():
            engine.close()
        return rows


def machine() -> dict[str, Any]:
    """Return the properties of the machine that affect the times."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = models[0] if models else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS", ""),
    }


def versions(engines: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python, bipedsim, its libraries, and the packages of the engines."""
    version_of = {"python": platform.python_version(), "bipedsim": __version__}
    version_of.update({package: metadata.version(package) for package in ("pin", "numba", "numpy")})
    version_of.update({ENGINES[name].package: engine_version(name) for name in engines if engine_version(name)})
    return version_of
