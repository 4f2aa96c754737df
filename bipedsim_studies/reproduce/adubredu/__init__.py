"""Adu-Bredu: contacts as a linear complementarity problem, with a ball, a block, a walker and a kick."""

from __future__ import annotations

from bipedsim_studies.reproduce.adubredu import ball, block, foot_on_ball, kick, walk_and_kick, walker
from bipedsim_studies.reproduce.common import Case, Paper

PAPER = Paper(
    "A. Adu-Bredu: Contact simulation of a 2D bipedal robot kicking a ball. Robotics Institute, University of Michigan",
    {
        "ball": Case("a ball bounces with restitution 0.5 and friction 0.3 until it rolls", ball.case),
        "block": Case("a block tumbles until it lies on a face", block.case),
        "walker": Case("a compass walker with a hip motor returns to its gait under PFL", walker.case),
        "kick": Case("table I and figure 2: the ball kicked with 30 to 100 N.m", kick.case),
        "walk_and_kick": Case(
            "figures 1, 2 and table I in one simulation: the walker walks up to the ball and kicks it",
            walk_and_kick.case,
        ),
        "foot": Case("beyond the paper: a swinging leg hits the ball, with the inertia of both", foot_on_ball.case),
    },
)
