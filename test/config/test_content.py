"""Digests of code: they change with any module in the dependencies, and with no other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bipedsim.config import OWN, changes, code_content, own_content, package_digest

FILES = {
    "mine_top.py": "import mine_helper\nfrom mine_package import walker\nimport json, numpy\n",
    "mine_helper.py": "GAIN = 1\n\ndef later():\n    import mine_lazy\n",
    "mine_lazy.py": "X = 1\n",
    "mine_package/__init__.py": "",
    "mine_package/walker.py": "from . import legs\nfrom .deep.arms import ARM\nfrom ..nowhere import X\n",
    "mine_package/legs.py": "LEG = 1\n",
    "mine_package/deep/__init__.py": "Y = 1\n",
    "mine_package/deep/arms.py": "from bipedsim.model import load_robot\nARM = 1\n",
    "mine_package/unused.py": "Z = 1\n",
    "mine_other.py": "Z = 1\n",
}
UNUSED = ("mine_package/unused.py", "mine_other.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_change_of_what_a_module_imports_is_a_change_of_its_content(folder: Path, name: str) -> None:
    before = code_content("mine_top")
    assert code_content("mine_top") == before
    (folder / name).write_text(FILES[name] + "# changed\n")
    now = code_content("mine_top")
    changed = {key for key in {*before, *now} if before.get(key) != now.get(key)}
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert changed == (set() if name in UNUSED else {module})
    assert not any(loaded.startswith("mine_") for loaded in sys.modules), "nothing is imported"


def test_libraries_count_by_version_and_the_simulator_by_itself(folder: Path) -> None:
    content = code_content("mine_top")
    assert content["numpy"] == sys.modules["numpy"].__version__
    assert not {"json", OWN} & set(content)
    assert own_content()["numpy"] == content["numpy"]


def test_what_a_process_has_loaded_does_not_change_with_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_content("mine_lazy")
    monkeypatch.setitem(sys.modules, "mine_lazy", __import__("mine_lazy"))
    (folder / "mine_lazy.py").write_text("X = 2\n")
    assert code_content("mine_lazy") == before
    monkeypatch.delitem(sys.modules, "mine_lazy")
    assert code_content("mine_lazy") != before


def _edited(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


def _renamed(path: Path) -> None:
    path.rename(path.with_name(f"new_{path.name}"))


@pytest.mark.parametrize("change", [_edited, _renamed, Path.unlink])
@pytest.mark.parametrize("name", ["mine_package/legs.py", "mine_package/deep/arms.py", "mine_package/some.yaml"])
def test_a_package_is_all_of_its_files(folder: Path, change: Callable[[Path], object], name: str) -> None:
    (folder / "mine_package" / "some.yaml").write_text("a: 1\n")
    digest = package_digest.__wrapped__
    before = digest(folder / "mine_package")
    apart = digest(folder / "mine_package", ("deep",))
    change(folder / name)
    assert digest(folder / "mine_package") != before
    assert (digest(folder / "mine_package", ("deep",)) == apart) is ("deep" in name)


def test_differences_are_named() -> None:
    was = {"a": "1" * 64, "b": "2" * 64, "numpy": "2.0"}
    now = {"a": "3" * 64, "c": "2" * 64, "numpy": "2.1"}
    names = [said.split()[0] for said in changes(was, now)]
    assert names == ["a", "b", "c", "numpy"]
    assert "2.0" in changes(was, now)[-1]
    assert "2.1" in changes(was, now)[-1]
    assert changes(was, was) == []
