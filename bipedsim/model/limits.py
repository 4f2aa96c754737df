"""Effort and velocity limits of a pinocchio model, which pinocchio 4 has for each direction and 3 has once."""

from __future__ import annotations

import pinocchio as pin

from bipedsim.numerics import Array

_TWO_SIDED = hasattr(pin.Model, "upperEffortLimit")


def effort_and_velocity_limits(model: pin.Model) -> tuple[Array, Array]:
    """Return copies of the limits of effort [N.m or N] and velocity [rad/s or m/s], (nv,) each."""
    if _TWO_SIDED:
        return model.upperEffortLimit.copy(), model.upperVelocityLimit.copy()
    return model.effortLimit.copy(), model.velocityLimit.copy()


def set_effort_and_velocity_limits(model: pin.Model, effort: Array, velocity: Array) -> None:
    """Set the limits of both directions, (nv,) each."""
    if _TWO_SIDED:
        model.upperEffortLimit, model.lowerEffortLimit = effort, -effort
        model.upperVelocityLimit, model.lowerVelocityLimit = velocity, -velocity
    else:
        model.effortLimit, model.velocityLimit = effort, velocity
