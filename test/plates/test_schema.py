"""Force plates in files: models, errors, and a lossless text format."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import check_fields, refusal

from bipedsim.config import from_mapping
from bipedsim.errors import ConfigError
from bipedsim.ground import get_ground
from bipedsim.plates import PLATES, PlateConfig, describe_model, parse_plates
from bipedsim.runs import get_scenario

WRONG = """
controller: posture
force_plates:
  - {name: A, size: [0.6, 0.4]}
  - {name: b, type: 3, size: [0.6, 0.4], position: [0.1, 0, 0]}
  - {name: b, size: [0.6, 0.4], position: [0.1, 0.1, 0], bits: 16}
  - {name: d, size: [0.6], position: [5, 0, 0]}
  - {name: e, size: [0.6, 0.4], position: [6, 0, 0], yaw: 1, rpy: [0, 0, 1], modle: x}
  - {name: f, model: kistlr_9281c, size: [0.6, 0.4], position: [7, 0, 0]}
  - {name: g, size: [0.6, 0.4], noise: [1, 2], damping: 0.1, position: [8, 0, 0]}
  - {name: h, size: [0.6, 0.4], cross_talk: [[1, 0], [0, 1]], position: [9, 0, 0]}
  - {name: i, position: [10, 0, 0], calibration: [[1, 0, 0, 0, 0, 0]]}
"""


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        get_scenario(path)
    places = [fault.place.removeprefix(f"{path}: ") for fault in caught.value.faults]
    assert places == [
        "force_plates[0]: name",
        "force_plates[1]: half_base",
        "force_plates[2]: bits",
        "force_plates[3].size",
        "force_plates[4]",
        "force_plates[5]: model",
        "force_plates[6]: noise",
        "force_plates[6]: damping",
        "force_plates[7]: cross_talk",
        "force_plates[8]: size",
        "force_plates[8]: calibration",
        "force_plates[8]: calibration",
    ]
    check_fields(caught.value.faults[4], kind="parameter", meant="model")


def test_plates_lie_beside_each_other(tmp_path: Path) -> None:
    path = tmp_path / "both.yaml"
    plates = "  - {{name: a, size: [0.6, 0.4]}}\n  - {{name: {}, size: [0.6, 0.4], position: [{}, 0, 0], yaw: {}}}\n"
    head = "flat: {height: 0}\nforce_plates:\n"
    path.write_text(head + plates.format("b", 0.6, 0.0), encoding="utf-8")
    assert [one.name for one in get_ground(path).force_plates] == ["a", "b"]
    path.write_text(head + plates.format("b", 0.6, 0.1), encoding="utf-8")
    with refusal(place="force_plates: 'a' and 'b'"):
        get_ground(path)
    path.write_text(head + plates.format("a", 2.0, 0.0), encoding="utf-8")
    with refusal(place="force_plates: name", value="a"):
        get_ground(path)
    path.write_text("force_plates: [{name: a, size: [0.6, 0.4]}]\n", encoding="utf-8")
    with refusal(place=path):
        get_ground(path)


@pytest.mark.parametrize("name", sorted(PLATES))
def test_every_model_says_where_its_figures_are_from(name: str) -> None:
    model = describe_model(name)
    assert len(model.source) > 40
    needed = {"range": 5000.0} if model.bits and model.range is None else {}
    given = {"name": "a", "model": name, "size": [0.6, 0.4], **needed}
    config = from_mapping(PlateConfig, given, "here").complete()
    assert config.geometry().size == pytest.approx((0.6, 0.4))
    assert config.natural_frequency == model.natural_frequency


def test_what_is_said_beside_a_model_counts() -> None:
    own = PlateConfig(name="a", model="kistler_9281c", size=(0.6, 0.4), thickness=0.1).complete()
    assert (own.type, own.thickness, own.natural_frequency) == (3, 0.1, 1000.0)
    # Another type has other channels.
    other = PlateConfig(name="a", model="kistler_9281c", size=(0.6, 0.4), type=2).complete()
    assert (other.range, other.half_base, other.natural_frequency) == (None, None, 1000.0)


def test_texts_hold_a_plate_to_the_bit() -> None:
    config = PlateConfig(
        name="a", model="kistler_9281c", size=(0.1 + 0.2, 0.4), position=(1.0 / 3.0, 0.0, 0.0), yaw=0.1, noise=1e-17
    )
    (again,) = parse_plates([config.text()])
    assert again.model == ""
    assert again.text() == config.text()
    assert again.complete().geometry().corners.tobytes() == config.complete().geometry().corners.tobytes()
    with refusal(place="force_plates[0]", value="{"):
        parse_plates(["{"])
