"""Import scripts of the folder benchmarks, which is no package."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from paths import ROOT


def benchmark(path: str) -> ModuleType:
    """Return the script with this path below benchmarks, without its suffix; its neighbours can be imported by it."""
    file = ROOT / "benchmarks" / f"{path}.py"
    name = f"benchmarks_{path.replace('/', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(file.parent))
    try:
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(file.parent))
    return module
