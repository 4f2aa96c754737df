"""Define the settings of the benchmark, which are the keys of its settings file."""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param


@dataclass(frozen=True)
class BenchSettings:
    """Settings of the benchmark. An empty ``engines`` means all engines."""

    robots: tuple[str, ...] = param(("biped14", "talos_legs", "talos"), "names or paths of a robot.yaml")
    engines: tuple[str, ...] = param(
        (), "what to measure (default: all)", choices="bipedsim_studies.bench.engines:ENGINES"
    )
    dt: float = param(1e-3, "step of all engines", unit="s", low=1e-6, high=1.0)
    blocks: int = param(40, "blocks of timed steps per engine, in alternation", low=1)
    steps: int = param(150, "steps of a block", low=1)
    push_fraction: float = param(
        0.3, "side load for the measurement of creep, as a fraction of that which tips the robot", low=1e-6, high=1.0
    )
    creep_seconds: float = param(2.0, "time under the side load", unit="s", low=1e-3, high=1e4)
    loop_blocks: int = param(5, "with --loop: alternations of our nodes and the reference exchange, per clock", low=1)
    loop_seconds: float = param(3.0, "with --loop: simulated time of each of them", unit="s", low=0.05, high=1e4)
    repetitions: int = param(
        5, "of each fall, drop, heap, kick and walk, whose single steps are timed; 0 leaves them out", low=0
    )
    own: bool = param(True, "measure our own models over the number of vertices, and in motion")
