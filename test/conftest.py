"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

# Kernels load at first use and the machine is shared: no example has a deadline. The same examples run every time.
settings.register_profile("bipedsim", deadline=None, derandomize=True)
settings.load_profile("bipedsim")
