"""Left and right in names."""

from __future__ import annotations

import pytest

from bipedsim.model import split_side


@pytest.mark.parametrize(
    ("left", "right", "rest"),
    [
        ("LHip", "RHip", "Hip"),
        ("l_knee", "r_knee", "knee"),
        ("elbow_L", "elbow_R", "elbow"),
        ("LeftElbow", "RightElbow", "Elbow"),
        ("leg_left_1_joint", "leg_right_1_joint", "leg_1_joint"),
        ("lKnee", "rKnee", "Knee"),
        ("leftknee", "rightknee", "knee"),
        ("L_HIP_PITCH", "R_HIP_PITCH", "HIP_PITCH"),
        ("left_foot_l", "right_foot_l", "foot_l"),
    ],
)
def test_the_two_of_a_pair_share_the_rest(left: str, right: str, rest: str) -> None:
    assert split_side(left) == ("left", rest)
    assert split_side(right) == ("right", rest)


@pytest.mark.parametrize("name", ["torso", "upright", "larm", "LED", "Lidar", "left_to_right", "RGB_camera", ""])
def test_other_names_have_no_side(name: str) -> None:
    assert split_side(name) == ("", name)
