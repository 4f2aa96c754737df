"""The source distribution has every file of the packages and no compiled kernel, and a wheel that pip takes first."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import make_wheel
import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

CACHES = ("bipedsim/numerics/__pycache__/kernels/a.nbc", "bipedsim/kernels/b.nbc", "bipedsim/__pycache__/c.pyc")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout in use: the build would write into the original."""
    listed = subprocess.run(["git", "ls-files"], cwd=make_wheel.ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    copy = tmp_path_factory.mktemp("checkout")
    for name in listed.stdout.split():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(make_wheel.ROOT / name, copy / name)
    for name in CACHES:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).touch()
    return copy


@pytest.fixture(scope="module")
def names(checkout: Path) -> set[str]:
    """Return the files of the source distribution, relative to its folder."""
    subprocess.run([sys.executable, "setup.py", "-q", "sdist"], cwd=checkout, check=True, capture_output=True)
    (archive,) = checkout.glob("dist/*.tar.gz")
    with tarfile.open(archive) as tar:
        return {name.partition("/")[2] for name in tar.getnames()}


@pytest.mark.long
def test_the_source_distribution_has_every_file_of_the_packages(checkout: Path, names: set[str]) -> None:
    folders = ("bipedsim", "bipedsim_ros", "bipedsim_studies", "launch", "config", "tools")
    files = {path.relative_to(checkout).as_posix() for folder in folders for path in (checkout / folder).rglob("*.*")}
    assert {name for name in files if "__pycache__" not in name} - set(CACHES) <= names


@pytest.mark.long
def test_the_source_distribution_has_no_caches(names: set[str]) -> None:
    """The caches of a checkout in use take tens of megabytes, and are useless on other machines."""
    assert not {name for name in names if Path(name).suffix in {".nbc", ".pyc"} or "__pycache__" in name}


@pytest.mark.skipif(sys.platform != "linux", reason="the wheels with kernels are for Linux")
def test_pip_takes_a_wheel_with_kernels_before_the_plain_one() -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    supported = list(sys_tags())
    ranks = []
    for tags in (f"{tag}-{tag}-{make_wheel.PLATFORM}", "py3-none-any"):
        of_wheel = parse_wheel_filename(f"bipedsim-0.1.0-{tags}.whl")[3]
        ranks.append(min(supported.index(one) for one in of_wheel))
    assert ranks == sorted(ranks)
