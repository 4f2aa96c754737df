"""List the engines. To add one, add a file and an entry in ``ENGINES``."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bipedsim.contact import CONTACT_MODELS
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot
from bipedsim_studies.bench.engines.base import Engine, EngineUnavailableError, not_supported
from bipedsim_studies.bench.engines.scene import Scene


@dataclass(frozen=True)
class EngineSpec:
    """Definition of an engine.

    Attributes:
        label: Name in tables.
        target: ``module:Class`` below ``bipedsim_studies.bench.engines``.
        package: Required distribution; empty for bipedsim's own engines.
        options: Arguments of the class except robot and dt.
        rest_tolerance: Error of the rest force that the engine's theory and defaults explain, for tests [N].
        note: Difference between this robot model and that of the other engines.
    """

    label: str
    target: str
    package: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rest_tolerance: float = 0.01
    note: str = ""

    @property
    def scenes(self) -> bool:
        """Whether bodies of the robot, joint limits and objects can make contact in this engine."""
        return self.target in (_MUJOCO, _OURS)


_OURS = "ours:BipedSimEngine"
_MUJOCO = "mujoco_engine:MujocoEngine"
_BULLET = "bullet_engine:BulletEngine"
_ON_LINKS = "has no reflected inertia: that of a joint is added to its link"
_ELLIPTIC = {"cone": "elliptic", "impratio": "100"}

ENGINES: dict[str, EngineSpec] = {
    "mujoco": EngineSpec("MuJoCo, default", _MUJOCO, "mujoco", rest_tolerance=0.1),
    "mujoco_elliptic": EngineSpec(
        "MuJoCo, elliptic, impratio 100", _MUJOCO, "mujoco", {"options": _ELLIPTIC}, rest_tolerance=0.1
    ),
    "mujoco_noslip": EngineSpec(
        "MuJoCo, elliptic, impratio 100, noslip 10",
        _MUJOCO,
        "mujoco",
        {"options": {**_ELLIPTIC, "noslip_iterations": "10"}},
        rest_tolerance=0.1,
    ),
    # These options gave the least creep over all robots of impratio 10 ... 1e6 with 0, 10 and 50 iterations.
    "mujoco_stiction": EngineSpec(
        "MuJoCo, elliptic, impratio 1e4, noslip 10",
        _MUJOCO,
        "mujoco",
        {"options": {"cone": "elliptic", "impratio": "1e4", "noslip_iterations": "10"}},
        rest_tolerance=0.1,
    ),
    **{name: EngineSpec(f"bipedsim, {name}", _OURS, "", {"contact": name}) for name in CONTACT_MODELS},
    "one_step_sensors": EngineSpec(
        "bipedsim, one_step, all sensors",
        _OURS,
        "",
        {"contact": "one_step", "sensors": True},
    ),
    "pinocchio_pgs": EngineSpec(
        "pinocchio PGS, 1e-9, numpy", "pinocchio_engine:PinocchioEngine", "", {"solver": "PGS"}
    ),
    "pinocchio_admm": EngineSpec(
        "pinocchio ADMM, 1e-9, numpy", "pinocchio_engine:PinocchioEngine", "", {"solver": "ADMM"}
    ),
    "drake_tamsi": EngineSpec(
        "Drake, TAMSI", "drake_engine:DrakeEngine", "drake", {"approximation": "kTamsi"}, rest_tolerance=0.1
    ),
    "drake_sap": EngineSpec(
        "Drake, SAP", "drake_engine:DrakeEngine", "drake", {"approximation": "kSap"}, rest_tolerance=0.1
    ),
    "bullet": EngineSpec("Bullet, default", _BULLET, "pybullet", rest_tolerance=5.0, note=_ON_LINKS),
    "bullet_200": EngineSpec(
        "Bullet, 200 iterations, no early end",
        _BULLET,
        "pybullet",
        {"solver": {"numSolverIterations": 200, "solverResidualThreshold": 0.0}},
        rest_tolerance=5.0,
        note=_ON_LINKS,
    ),
    "dart": EngineSpec("DART, default", "dart_engine:DartEngine", "dartpy", rest_tolerance=0.1, note=_ON_LINKS),
    "jiminy": EngineSpec(
        "jiminy, constraint, regularization 1e-3",
        "jiminy_engine:JiminyEngine",
        "jiminy-py",
        {"regularization": 1e-3},
        rest_tolerance=0.1,
    ),
    "jiminy_1e-6": EngineSpec(
        "jiminy, constraint, regularization 1e-6",
        "jiminy_engine:JiminyEngine",
        "jiminy-py",
        {"regularization": 1e-6},
        rest_tolerance=0.1,
    ),
}

REFERENCE = "mujoco"
"""Reference engine of the ratios."""


def engine_version(name: str) -> str:
    """Return the installed version of the engine's package, or ``""`` if it is missing or bipedsim's own."""
    package = ENGINES[name].package
    try:
        return importlib.metadata.version(package) if package else ""
    except importlib.metadata.PackageNotFoundError:
        return ""


def make_engine(name: str, robot: Robot, dt: float, scene: Scene | None = None) -> Engine:
    """Return the engine ``name`` with the robot.

    Args:
        name, robot, dt: Engine, robot and step [s].
        scene: Contacts in addition to those of the soles.

    Raises:
        UnknownNameError: The engine does not exist; the message lists all engines.
        EngineUnavailableError: The engine's package is missing, or it does not support the robot.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    spec = ENGINES[name]
    module, _, cls = spec.target.partition(":")
    try:
        loaded = importlib.import_module(f"bipedsim_studies.bench.engines.{module}")
    except ImportError as error:
        raise EngineUnavailableError("not installed", f"pip install {spec.package} ({error})") from error
    options = dict(spec.options)
    if scene is not None:
        if not spec.scenes:
            raise not_supported("the adapter knows only the soles", name)
        options["scene"] = scene
    engine: Engine = getattr(loaded, cls)(robot, dt, **options)
    return engine
