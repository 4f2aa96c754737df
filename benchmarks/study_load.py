"""Measure the throughput of a study's scheduler on one machine, with workers that only wait.

    python benchmarks/study_load.py --workers 100 --trials 10000 --seconds 1

The workers are the threads of two processes. A trial waits and returns a row of the usual size. The program prints the
total time, the ideal time, and the fraction of the time in which the workers had work. This fraction falls if a trial
is shorter than workers / (trials per second).
"""

from __future__ import annotations

import argparse
import logging
import resource
import time
from typing import Any

PROCESSES = 2
ROW = {f"figure_{i}": float(i) for i in range(70)}


def wait(seconds: float) -> dict[str, Any]:
    """Wait for the duration of a trial."""
    time.sleep(seconds)
    return dict(ROW)


def main() -> None:
    """Run the measurement and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a trial takes (default: %(default)s)")
    args = parser.parse_args()

    import distributed

    from bipedsim_studies.study.processes import DaskWorkers

    logging.getLogger("distributed").setLevel(logging.ERROR)
    cluster = distributed.LocalCluster(
        n_workers=PROCESSES,
        threads_per_worker=args.workers // PROCESSES,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
        memory_limit=0,
    )
    with cluster, DaskWorkers(0, cluster.scheduler_address) as workers:
        begin, usage_before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        done = sum(1 for _ in workers.each(wait, [args.seconds] * args.trials))
        elapsed, usage = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    ideal = args.trials * args.seconds / args.workers
    cpu_time = usage.ru_utime + usage.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    print(f"{done} trials of {args.seconds:g} s on {args.workers} workers: {elapsed:.1f} s, ideal {ideal:.1f} s")
    per_trial = cpu_time / args.trials * 1e3
    print(f"workers busy {ideal / elapsed:.1%}; {per_trial:.2f} ms of processor time a trial, all included")


if __name__ == "__main__":
    main()
