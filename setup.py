"""Build script for colcon (ament_python) and pip alike; pyproject.toml holds only the tools' settings."""

import re
import sys
from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

NAME = "bipedsim"
PACKAGES = (NAME, f"{NAME}_ros", f"{NAME}_studies")
ROS_COMMANDS = ("up", "teleop", "control", "check-robot", "ros2-control", "env", "doctor")
STUDIES_COMMANDS = (
    *("reproduce", "compare", "push-map", "score", "study", "margins", "modes", "poincare", "bench"),
    *("identify", "gap"),
)
NODES = ("sim_node", "controller_node", "recorder_node", "commander_node", "teleop_node", "view_node", "unitree_node")

# A wheel puts console scripts into bin/, but `ros2 run` looks only in lib/<package>/: this goes there and calls those.
RUN_SCRIPT = '#!/bin/sh\nexec "$(dirname "$0")/../../bin/$(basename "$0")" "$@"\n'


def ros_wheels(rclpy: str, messages: str, rosgraph: str) -> "list[str]":
    """Return a distribution of ROS 2 as wheels, which exist for this platform only, by versions of its packages."""
    common = ("diagnostic-msgs", "geometry-msgs", "nav-msgs", "sensor-msgs", "std-msgs", "std-srvs", "trajectory-msgs")
    wanted = [f"ros-rclpy[fastrtps]~={rclpy}", f"ros-rosgraph-msgs~={rosgraph}"]
    wanted += [f"ros-{name}~={messages}" for name in common]
    return [f'{one}; platform_system == "Linux" and platform_machine == "x86_64"' for one in sorted(wanted)]


ROS = ros_wheels("7.1.6", "5.3.6", "2.0.3")  # Jazzy
KILTED = ros_wheels("9.1.2", "5.5.1", "2.3.0")  # instead of it: docs/development.md
ROBOTS = ["example-robot-data>=5.0"]
MUJOCO = ["mujoco>=4.0; python_version >= '3.11'", "mujoco>=3.3; python_version < '3.11'"]
POLICY = ["onnxruntime>=1.17"]
GYM = ["gymnasium>=1.0"]
STUDY = ["distributed>=2024.1", "pyarrow>=15"]
UNITREE = ["cyclonedds>=0.10.2; python_version < '3.14'"]  # no wheels yet for 3.14
VIEW = ["bokeh>=3.4", "fast-simplification>=0.1.9", "viser>=1.1"]
LAB = ["pyarrow>=15"]
BENCH = [*MUJOCO, "dartpy>=6.19", "drake>=1.50", "jiminy-py>=1.8.12", "pybullet>=3.2.6"]  # each may be missing
TEST = [
    *MUJOCO,
    *GYM,
    *LAB,
    *POLICY,
    *STUDY,
    *UNITREE,
    *VIEW,
    "c3d>=0.6",
    "ezc3d>=1.5.18",
    "hypothesis>=6.100",
    "ipykernel>=6.29",
    "mcap-ros2-support>=0.5",
    "nbclient>=0.10",
    "onnx>=1.16",
    "playwright>=1.50",
    "pytest>=7.4",
    "pytest-xdist>=3.5",
]
DOCS = ["mkdocs-material>=9.6", "mkdocstrings[python]>=0.30", "ruff>=0.9"]
LINT = ["import-linter>=2.3", "mypy>=1.15", "ruff>=0.9", "types-PyYAML"]
SETUP = ["pip", "setuptools", "uv", "wheel"]  # what tools/setup_venv.py installs the rest with


def version() -> str:
    """``__version__`` of the package, read and not imported: at build time its dependencies may be missing."""
    text = Path(NAME, "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise RuntimeError(f'{NAME}/__init__.py has no line __version__ = "..."')
    return found.group(1)


def package_files(package: str) -> "list[str]":
    """All files of a package but Python, from its folder: robots, grounds, scenarios. Old setuptools know no ``**``."""
    root = Path(package)
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"})
    return sorted(path.relative_to(root).as_posix() for path in files if "__pycache__" not in path.parts)


def data_files() -> "list[tuple[str, list[str]]]":
    """What ROS tools look for outside the Python packages."""
    share = f"share/{NAME}"
    found = [
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (share, ["package.xml"]),
        (f"{share}/launch", sorted(glob("launch/*.py"))),
        (f"{share}/config", sorted(glob("config/*.*"))),
        (f"{share}/examples", sorted(glob("examples/*.ipynb"))),
        (f"{share}/examples/other_robot", sorted(glob("examples/other_robot/*.*"))),
        (f"{share}/examples/requests", sorted(glob("examples/requests/*.*"))),
    ]
    if {"bdist_wheel", "editable_wheel"} & set(sys.argv):
        folder = Path("build", "ros2_run")
        folder.mkdir(parents=True, exist_ok=True)
        for node in NODES:
            (folder / node).write_text(RUN_SCRIPT, encoding="utf-8")
            (folder / node).chmod(0o755)
        found.append((f"lib/{NAME}", [(folder / node).as_posix() for node in NODES]))
    return [(target, files) for target, files in found if files]


setup(
    name=NAME,
    version=version(),
    description="Simulator of two-legged robots for people who write their controllers, with ROS 2 nodes",
    long_description=Path("README.md").read_text(encoding="utf-8") if Path("README.md").is_file() else "",
    long_description_content_type="text/markdown",
    author="The bipedsim maintainers",
    maintainer="The bipedsim maintainers",
    maintainer_email="maintainers@bipedsim.invalid",
    license="Apache-2.0",
    packages=find_packages(include=[pattern for package in PACKAGES for pattern in (package, f"{package}.*")]),
    package_data={package: package_files(package) for package in PACKAGES},
    data_files=data_files(),
    python_requires=">=3.10",
    install_requires=[
        "setuptools>=65.5",  # ament_python's convention
        "daqp>=0.11",
        "lazy-loader>=0.4",
        "matplotlib>=3.5",
        "mcap>=1.6",
        "numba>=0.58",
        "numpy>=1.22",
        "packaging>=21.3",
        "pillow>=9.1",
        "pin>=3.8",
        "pycollada>=0.8",
        "pyyaml>=5.4",
        "rosbags>=0.11",
        "scipy>=1.9,!=1.15.*",  # nnls of 1.15.3 returns wrong minima (docs/dependencies.md)
        "tqdm>=4.57",
        "trimesh>=4.0",
    ],
    extras_require={
        "ros": ROS,
        "kilted": KILTED,
        "robots": ROBOTS,
        "policy": POLICY,
        "unitree": UNITREE,
        "examples": MUJOCO,
        "gym": GYM,
        "study": STUDY,
        "view": VIEW,
        "lab": LAB,
        "mujoco": MUJOCO,
        "bench": BENCH,
        "test": TEST,
        "lint": LINT,
        "docs": DOCS,
        "setup": SETUP,
    },
    zip_safe=False,  # robots, grounds and scenarios are read as files
    entry_points={
        "console_scripts": [
            "bipedsim = bipedsim.cli.main:main",
            *(f"{node} = bipedsim_ros.nodes.start:main" for node in NODES),
        ],
        "bipedsim.commands": [
            *(f"{name} = bipedsim_ros.commands:{name.upper().replace('-', '_')}" for name in ROS_COMMANDS),
            *(f"{name} = bipedsim_studies.commands:{name.upper().replace('-', '_')}" for name in STUDIES_COMMANDS),
        ],
        "bipedsim.formats": ["mcap = bipedsim_ros.wire.run_bag:write_run_bag"],
        "bipedsim.live": ["ros = bipedsim_ros.commands:VIEW"],
        "bipedsim.robots": ["studies = bipedsim_studies.bodies"],
        "bipedsim.controllers": ["finite_time = bipedsim_studies.planar.finite_time:FiniteTimeController"],
    },
)
