"""How many trials a second the scheduler of a study can hand out and take back: workers that only wait, on one machine.

    python benchmarks/study_load.py --workers 100 --trials 10000 --seconds 1

The workers are the threads of two processes; a trial waits and returns a row of the usual size. What is printed beside
the ideal is the share of the time in which the workers had work: it falls when trials are shorter than
workers / (trials a second).
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
    """Take as long as a trial would."""
    time.sleep(seconds)
    return dict(ROW)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a trial takes (default: %(default)s)")
    args = parser.parse_args()

    import distributed

    from bipedsim_studies.study.workers import DaskWorkers

    logging.getLogger("distributed").setLevel(logging.ERROR)
    cluster = distributed.LocalCluster(
        n_workers=PROCESSES,
        threads_per_worker=args.workers // PROCESSES,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
        memory_limit=0,
    )
    with cluster, DaskWorkers(0, cluster.scheduler_address) as workers:
        begin, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        done = sum(1 for _ in workers.each(wait, [args.seconds] * args.trials))
        took, now = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    ideal = args.trials * args.seconds / args.workers
    spent = now.ru_utime + now.ru_stime - cpu.ru_utime - cpu.ru_stime
    print(f"{done} trials of {args.seconds:g} s on {args.workers} workers: {took:.1f} s, ideal {ideal:.1f} s")
    print(
        f"workers busy {ideal / took:.1%}; {spent / args.trials * 1e3:.2f} ms of processor time a trial, all included"
    )


if __name__ == "__main__":
    main()
