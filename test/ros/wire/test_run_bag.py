"""Runs as MCAP files: nothing is lost on the way back, other people's readers take them, links are where they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.analysis import ControllerStop
from bipedsim.cli.main import main
from bipedsim.control import StopKind
from bipedsim.model import load_robot
from bipedsim.recording import COLUMNS, Recording, load_recording
from bipedsim_ros.wire.topics import TOPICS, WORLD_FRAME, sole_frame

MADE = ["--scenario", "walk_on_plates", "--duration", "1.9"]
"""Stands on a plate, shifts its weight and lifts a foot."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as recorded without ROS, and walk.mcap next to it."""
    path = tmp_path_factory.mktemp("walk") / "walk.npz"
    assert main(["run", *MADE, "--output", str(path)]) == 0
    assert main(["export", str(path), "--format", "mcap"]) == 0
    return path


def differing(a: Recording, b: Recording) -> list[str]:
    """Return the differences between two recordings, to the bit."""
    pairs: dict[str, tuple[Any, Any]] = {name: (getattr(a, name), getattr(b, name)) for name in COLUMNS}
    pairs |= {f"readout {name}": (values, b.readouts.get(name)) for name, values in a.readouts.items()}
    pairs |= {f"plate {n}": (p.channels, b.force_plates[n].channels) for n, p in a.force_plates.items()}
    return [name for name, (one, other) in pairs.items() if one.tobytes() != np.asarray(other).tobytes()]


def test_a_run_comes_back_as_it_was(walk: Path) -> None:
    run, back = load_recording(walk), load_recording(walk.with_suffix(".mcap"))
    # Stamps are nanoseconds, and of the poses of soles a bag has the joints and the base.
    np.testing.assert_allclose(back.t, run.t, atol=1e-9)
    np.testing.assert_allclose(back.sole_poses, run.sole_poses, atol=1e-12)
    assert set(differing(run, back)) <= {"t", "sole_poses"}
    assert (back.notes, back.robot, back.feet, back.weight) == ((), run.robot, run.feet, run.weight)
    assert set(back.readouts) == set(run.readouts)
    assert set(back.force_plates) == set(run.force_plates)
    assert back.run == {**run.run, "about": dict(run.about)}
    assert back.statistics == run.statistics


def decoded(path: Path) -> dict[str, list[Any]]:
    """Topic to (log time, message) of a file, as the packages mcap and mcap-ros2-support read it."""
    decoder = pytest.importorskip("mcap_ros2.decoder", reason="mcap-ros2-support is not installed")
    from mcap.reader import make_reader

    found: dict[str, list[Any]] = {}
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[decoder.DecoderFactory()])
        for _, channel, message, content in reader.iter_decoded_messages():
            found.setdefault(channel.topic, []).append((message.log_time, content))
    return found


def pose_of(transform: Any) -> pin.SE3:
    """Return a geometry_msgs/Transform as a pose."""
    t, r = transform.translation, transform.rotation
    return pin.XYZQUATToSE3(np.array([t.x, t.y, t.z, r.x, r.y, r.z, r.w]))


@pytest.mark.long
def test_links_hang_together_and_end_at_the_soles(walk: Path) -> None:
    """By names alone, each link has one parent and hangs on odom, and the soles are where the simulator had them."""
    run, robot = load_recording(walk), load_robot("biped14")
    found = decoded(walk.with_suffix(".mcap"))
    ((_, fixed),) = found["/tf_static"]
    assert len(found["/tf"]) == pytest.approx(100.0 * run.duration, abs=2)
    links = {frame.name for frame in robot.model.frames if frame.type == pin.FrameType.BODY}
    for at, message in found["/tf"][:: len(found["/tf"]) // 10]:
        parents = {one.child_frame_id: one for one in (*message.transforms, *fixed.transforms)}
        assert len(parents) == len(message.transforms) + len(fixed.transforms)
        row = int(np.argmin(np.abs(run.t - 1e-9 * at)))
        for frame in (*links, *(sole_frame(foot) for foot in run.feet)):
            pose, here = pin.SE3.Identity(), frame
            while here != WORLD_FRAME:
                pose, here = pose_of(parents[here].transform) * pose, parents[here].header.frame_id
            for foot, wanted in zip(run.feet, run.sole_poses[row], strict=True):
                if frame == sole_frame(foot):
                    assert pose.isApprox(pin.XYZQUATToSE3(wanted), 1e-9)


@pytest.mark.long
def test_other_readers_find_numbers_types_and_what_the_layouts_show(walk: Path) -> None:
    run, found = load_recording(walk), decoded(walk.with_suffix(".mcap"))
    wrench = [m.wrench.force for _, m in found["/left_foot/wrench"]]
    np.testing.assert_array_equal([[f.x, f.y, f.z] for f in wrench], run.wrench[:, 0, :3])
    np.testing.assert_array_equal([m.position for _, m in found["/joint_states"]], run.joint_position)
    assert found["/joint_states"][0][1].name == list(run.joint_names)
    assert found["/robot_description"][0][1].data.startswith("<")
    assert {m.data for _, m in found["/left_foot/contact_mode"]} >= {"face stick"}
    assert any(m.poses for _, m in found["/plan/footsteps"])
    speed = [m.twist.twist.linear.x for _, m in found["/ground_truth/odom"]][1:]
    np.testing.assert_allclose(np.cumsum(speed) * 1e-3, run.base_pose[1:, 0] - run.base_pose[0, 0], atol=1e-4)
    known = {name for row in TOPICS.values() if not row.is_prefix for name in row.names(run.feet)}
    prefixes = tuple(row.prefix for row in TOPICS.values() if row.is_prefix)
    assert [topic for topic in found if topic not in known and not topic.startswith(prefixes)] == []


@pytest.mark.parametrize("kind", [StopKind.NOT_FINITE, None])
def test_a_stop_comes_back_with_its_reason(walk: Path, kind: StopKind | None) -> None:
    run = load_recording(walk).rows(slice(0, 60))
    stop = ControllerStop(float(run.t[40]), "its torque of l_knee is nan", kind)
    stop.note(run)
    file = walk.with_name(f"stopped_{kind is None}.npz")
    run.save(file)
    assert main(["export", str(file), "--format", "mcap"]) == 0
    back = load_recording(file.with_suffix(".mcap"))
    assert ControllerStop.recorded(back) == replace(stop, at=back.t[40])


def test_a_bag_is_no_other_and_none_is_overwritten(walk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = walk.with_name("again.mcap")
    assert main(["export", str(walk.with_suffix(".mcap")), "-o", str(again), "--from", "0.5", "--to", "0.6"]) == 0
    run, part = load_recording(walk, start=0.5, stop=0.6), load_recording(again)
    assert set(differing(run, part)) <= {"t", "sole_poses", *(f"plate {name}" for name in run.force_plates)}
    size = again.stat().st_size
    assert main(["export", str(walk), "-o", str(again)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert again.stat().st_size == size
    assert main(["export", str(walk), "--format", "mcap", "--filter", "10", "-o", str(walk.with_name("x.mcap"))]) == 2


def test_an_unknown_robot_is_told(walk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = load_recording(walk).rows(slice(0, 50))
    run.robot, run.about, run.run = "nobody", {}, {}
    run.save(walk.with_name("other.npz"))
    assert main(["export", str(walk.with_name("other.npz")), "--format", "mcap"]) == 0
    assert "without the robot and /tf" in capsys.readouterr().out
    assert len(load_recording(walk.with_name("other.mcap"))) == 50
