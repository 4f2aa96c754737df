"""Drives of an MJCF file: effort limits and gains of its actuators, springs, and joints without a drive."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Collection

import numpy as np

from bipedsim.descriptions.description import Description
from bipedsim.descriptions.mjcf_model import MjcfModel
from bipedsim.errors import some
from bipedsim.numerics import Array

FAR = 10.0
"""Position limit of sliding joints without a limit [m]."""
ENDLESS = np.pi * 100.0
"""Spring reference angle from which the reference is taken as an exporter's placeholder [rad]."""


class MjcfDrives:
    """Convert the actuators of a model.

    Args:
        model: The model.
        out: Receives limits, gains, passive and welded joints. Its URDF has the joints already.
    """

    def __init__(self, model: MjcfModel, out: Description) -> None:
        self._model = model
        self._out = out
        self._notes = out.notes

    def read(self, base_joints: Collection[int]) -> None:
        """Read limits and gains of the actuators; joints without actuator become passive, or welded if on a spring.

        Args:
            base_joints: Joints that are part of the floating base.
        """
        m = self._model.m
        self._note_other_actuators()
        limits: dict[int, float] = {}
        for joint, actuators in self._model.actuators.items():
            limits[joint] = self._joint_effort(joint, actuators)
            gains = [
                (gear**2 * -float(m.actuator_biasprm[i, 1]), gear**2 * -float(m.actuator_biasprm[i, 2]))
                for i, gear in actuators
                if self._is_servo(i)
            ]
            if gains:
                self._out.stiffness[self._model.name("joint", joint)] = (
                    sum(k for k, _ in gains),
                    sum(d for _, d in gains),
                )
        slow = [
            self._model.name("actuator", i)
            for i in range(m.nu)
            if int(m.actuator_dyntype[i]) != int(self._model.mj.mjtDyn.mjDYN_NONE)
        ]
        if slow:
            self._notes.dropped(f"dynamics of actuators {some(slow)}: their forces follow commands without delay")
        robot_joints = [j for body in self._model.bodies for j in self._model.joints(body) if j not in base_joints]
        passive, welded, rotors = [], [], self._model.gears.rotors
        for joint in robot_joints:
            if int(m.jnt_type[joint]) == int(self._model.mj.mjtJoint.mjJNT_BALL):
                continue
            name = self._model.name("joint", joint)
            self._write_limit(joint, limits.get(joint))
            stiffness = float(np.asarray(m.jnt_stiffness[joint]).flat[0])
            if joint in rotors:
                self._note_rotor(name, joint, stiffness)
                continue
            if not self._model.actuators or joint in self._model.actuators:
                if stiffness > 0.0:
                    self._notes.dropped(f"spring of joint {name!r}, {stiffness:.4g} N.m/rad, in addition to its drive")
            elif stiffness > 0.0:
                reference = float(m.qpos_spring[m.jnt_qposadr[joint]])
                self._out.locked[name] = reference if abs(reference) < ENDLESS else 0.0
                welded.append(name)
            else:
                self._out.passive.append(name)
                passive.append(name)
        if welded:
            self._notes.dropped(
                f"springs of {some(welded)}: these joints have no drive and are welded at their rest position"
            )
        if passive and not self._model.has_loops:
            self._notes.doubts(f"{some(passive)} have no drive: they are passive joints")

    def _note_other_actuators(self) -> None:
        """Note actuators that drive no hinge or slide joint."""
        transmission = self._model.mj.mjtTrn
        others: dict[str, list[str]] = {}
        for i in range(self._model.m.nu):
            joint = self._model.driven_joint(i)
            if joint < 0:
                tendon = int(self._model.m.actuator_trntype[i]) == int(transmission.mjTRN_TENDON)
                place = "on tendons" if tendon else "not on joints"
            elif joint in self._model.gears.rotors:
                continue
            elif joint not in self._model.actuators:
                place = f"of ball joint {self._model.name('joint', joint)!r}, whose hinges are passive"
            else:
                continue
            others.setdefault(place, []).append(self._model.name("actuator", i))
        for place, names in others.items():
            self._notes.dropped(f"actuators {place}: {some(names)}")

    def _joint_effort(self, joint: int, actuators: list[tuple[int, float]]) -> float:
        """Return the largest force of ``actuators`` on a joint, directly or through rotors [N.m or N]."""
        rotors = self._model.gears.driven.get(joint)
        if rotors is None:
            return sum(self._effort(i, gear) for i, gear in actuators)
        total = 0.0
        for rotor, turns in rotors.items():
            effort = sum(self._effort(i, gear) for i, gear in actuators if self._model.driven_joint(i) == rotor)
            if self._model.m.jnt_actfrclimited[rotor]:
                name = f"joint {self._model.name('joint', rotor)!r}"
                effort = min(effort, abs(turns) * self._largest(self._model.m.jnt_actfrcrange[rotor], name))
            total += effort
        return total

    def _note_rotor(self, name: str, joint: int, stiffness: float) -> None:
        """Note the spring and the range of a rotor, which is welded."""
        if stiffness > 0.0:
            self._notes.dropped(f"spring of rotor {name!r}, {stiffness:.4g} N.m/rad: its joint has no spring")
        if self._model.m.jnt_limited[joint]:
            low, high = self._model.m.jnt_range[joint]
            self._notes.dropped(f"range of rotor {name!r}, [{low:.4g}, {high:.4g}] rad: its joint has its own range")

    def _write_limit(self, joint: int, effort: float | None) -> None:
        """Write the <limit> of a joint; ``effort`` is the largest force of its actuators."""
        m, name = self._model.m, self._model.name("joint", joint)
        element = next(e for e in self._out.urdf.findall("joint") if e.get("name") == name)
        if m.jnt_actfrclimited[joint]:
            largest = self._largest(m.jnt_actfrcrange[joint], f"joint {name!r}")
            effort = largest if effort is None else min(effort, largest)
        limit = element.find("limit")
        if limit is None:
            limit = ElementTree.SubElement(element, "limit")
        # URDF requires effort and velocity; 0 means no limit.
        limit.set("effort", repr(effort) if effort is not None and np.isfinite(effort) else "0")
        limit.set("velocity", "0")
        if element.get("type") == "prismatic" and limit.get("lower") is None:
            limit.set("lower", f"{-FAR:g}")
            limit.set("upper", f"{FAR:g}")
            self._notes.guessed(f"limits of the unlimited joint {name!r}: {FAR:g} m in both directions")

    def _is_servo(self, actuator: int) -> bool:
        """Return whether an actuator is a position drive."""
        affine = int(self._model.m.actuator_biastype[actuator]) == int(self._model.mj.mjtBias.mjBIAS_AFFINE)
        return affine and float(self._model.m.actuator_biasprm[actuator, 1]) < 0.0

    def _effort(self, actuator: int, gear: float) -> float:
        """Return the largest force of an actuator on its joint [N.m or N]; inf without a limit."""
        m, name = self._model.m, f"actuator {self._model.name('actuator', actuator)!r}"
        largest = np.inf
        if m.actuator_forcelimited[actuator]:
            largest = self._largest(m.actuator_forcerange[actuator], name)
        is_motor = int(m.actuator_biastype[actuator]) == int(self._model.mj.mjtBias.mjBIAS_NONE)
        if is_motor and m.actuator_ctrllimited[actuator]:
            gain = abs(float(m.actuator_gainprm[actuator, 0]))
            largest = min(largest, gain * self._largest(m.actuator_ctrlrange[actuator], name))
        return gear * largest

    def _largest(self, limits: Array, name: str) -> float:
        """Return the larger of two absolute limits; robot.yaml has a single limit for both signs."""
        low, high = (abs(float(value)) for value in limits)
        if low != high:
            self._notes.dropped(
                f"lower limit of {name}, [{limits[0]:g}, {limits[1]:g}]: both signs have {max(low, high):g}"
            )
        return max(low, high)
