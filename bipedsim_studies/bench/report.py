"""Write a report of the benchmark as a table, a file and a figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bipedsim.config import to_json

Row = dict[str, Any]

LEAST_CREEP = 1e-12
"""Lower limit of the creep in the figure [um/s], because a logarithmic axis has no zero."""

COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("step us, min", lambda row: _number(row["step_us"]["min"], ".1f")),
    ("median", lambda row: _number(row["step_us"]["median"], ".1f")),
    ("/ MuJoCo", lambda row: _number(row.get("ratio_to_mujoco"), ".2f")),
    ("creep um/s", lambda row: _number(row["creep_um_s"], ".2g") + ("" if row["inside_cone"] else " (slides)")),
    ("creep um", lambda row: _number(row["creep_um"], ".2g")),
    ("rest force error N", lambda row: _number(row["rest_force_error_N"], ".1e")),
    ("penetration um", lambda row: _number(row["penetration_um"], ".2g")),
)


def _number(value: float | None, form: str) -> str:
    if value is None:
        return "-"
    # Up to 1e6, plain digits are easier to read: 3400 instead of 3.4e+03.
    text = format(value, form)
    return format(float(text), ".0f") if "e+" in text and abs(value) < 1e6 else text


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown with one table per robot, which is also readable in a terminal."""
    parameters = report["parameters"]
    description = (
        f"{parameters['blocks']} blocks of {parameters['steps']} standing steps of {1e3 * parameters['dt']:g} ms per "
        f"engine, in alternation on one core; creep over {parameters['creep_seconds']:g} s under "
        f"{parameters['push_fraction']:.0%} of the side load that tips the robot."
    )
    lines = [
        description,
        f"{report['machine']['cpu']}; " + ", ".join(f"{name} {text}" for name, text in report["versions"].items()),
    ]
    for robot, rows in report["robots"].items():
        lines += ["", f"## {robot}", "", *_grid(["engine", *(name for name, _ in COLUMNS)], _cells(rows))]
        notes = [f"- {row['label']}: {_status(row)}" for row in rows.values() if row["status"] != "ok" or row["note"]]
        lines += ["", *notes] if notes else []
    for robot, suites in report["suites"].items():
        lines += ["", f"## Single steps of falls, drops, hits and walks ({robot})", "", *_suite_table(suites)]
    if report["scaling"]:
        counts = list(next(iter(report["scaling"].values())))
        cells = [
            [f"bipedsim, {model}"]
            + [f"{row['step_us']['min']:.1f}" for row in rows.values()]
            + [f"{row['ratio_to_4']:.2f}" for row in list(rows.values())[1:]]
            for model, rows in report["scaling"].items()
        ]
        head = ["step us, min", *(f"N = {n}" for n in counts), *(f"{n} / {counts[0]}" for n in counts[1:])]
        lines += ["", "## Vertices per foot (biped14, standing)", "", *_grid(head, cells)]
    if report["motion"]:
        models = list(next(iter(report["motion"].values())))
        head = [
            "step us, min",
            *models,
            *(f"{model} / one_step" for model in models[1:]),
            "modes changed",
            "unresolved",
        ]
        cells = []
        for motion, rows in report["motion"].items():
            values = list(rows.values())
            cells.append(
                [motion]
                + [f"{row['step_us']['min']:.1f}" for row in values]
                + [f"{row['ratio_to_one_step']:.2f}" for row in values[1:]]
                + [", ".join(str(row[key]) for row in values) for key in ("state_changes", "unresolved")]
            )
        lines += ["", "## In motion (biped14)", "", *_grid(head, cells)]
    for robot, events in report["events"].items():
        kinds = list(next(iter(events.values()))["event_ratio"])
        cells = [
            [model, f"{row['standing_us']:.1f}"]
            + [f"{_number(row['event_ratio'][kind], '.1f')} ({row['steps'][kind]})" for kind in kinds]
            for model, row in events.items()
        ]
        head = ["event_ratio (of so many steps)", "standing us", *kinds]
        lines += ["", f"## Landings and bodies on the ground ({robot})", "", *_grid(head, cells)]
    return "\n".join(lines) + "\n"


def _suite_table(suites: dict[str, dict[str, Row]]) -> list[str]:
    """Return a table with one row per suite and engine, and a list of those without a result."""
    kinds = ("mean", "p99", "worst")
    cells, notes = [], []
    for suite, rows in suites.items():
        for row in rows.values():
            if "step_us" not in row:
                notes.append(f"- {suite}, {row['label']}: {_status(row)}")
                continue
            ratio = row.get("ratio_to_mujoco", {})
            cells.append(
                [suite, row["label"]]
                + [_number(row["step_us"][kind], ".1f") for kind in kinds]
                + [_number(ratio.get(kind), ".2f") for kind in kinds]
                + [_number(row.get("budget_used"), ".0%"), _number(row.get("unresolved"), "d")]
                + [_number(row.get("unresolved_depth_um"), ".2g"), _number(row.get("load_error_N"), ".1e")]
            )
    ratios = [f"{kind} / MuJoCo" for kind in kinds]
    head = ["suite", "engine", *(f"{kind} us" for kind in kinds), *ratios]
    head += ["budget used", "unresolved", "depth um", "force - m g N"]
    return [*_grid(head, cells), *(["", *notes] if notes else [])]


def _cells(rows: dict[str, Row]) -> list[list[str]]:
    empty = [""] * (len(COLUMNS) - 1)
    return [
        [row["label"], *(column(row) for _, column in COLUMNS)]
        if row["status"] == "ok"
        else [row["label"], row["status"], *empty]
        for row in rows.values()
    ]


def _status(row: Row) -> str:
    return row["note"] if row["status"] == "ok" else f"{row['status']}: {row['note']}"


def _grid(head: list[str], cells: list[list[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]

    def line(texts: list[str]) -> str:
        first, *others = texts
        padded = [first.ljust(widths[0]), *(text.rjust(w) for text, w in zip(others, widths[1:], strict=True))]
        return f"| {' | '.join(padded)} |"

    rule = f"| {'-' * widths[0]} | {' | '.join('-' * (w - 1) + ':' for w in widths[1:])} |"
    return [line(head), rule, *(line(row) for row in cells)]


def write(report: dict[str, Any], folder: Path) -> list[Path]:
    """Write report.json, table.md and plot.png into ``folder``. Return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "report.json", folder / "table.md", folder / "plot.png"]
    paths[0].write_text(to_json(report) + "\n", encoding="utf-8")
    paths[1].write_text(table(report), encoding="utf-8")
    plot(report, paths[2])
    return paths


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw step time and creep of every engine, with one colour per robot."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    measured = {
        robot: {name: row for name, row in rows.items() if row["status"] == "ok"}
        for robot, rows in report["robots"].items()
    }
    labels = {name: row["label"] for rows in measured.values() for name, row in rows.items()}
    names = list(labels)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12.0, 1.6 + 0.42 * max(len(names), 3)), sharey=True, layout="constrained"
    )
    height = 0.8 / max(len(measured), 1)
    for k, (robot, rows) in enumerate(measured.items()):
        positions = [names.index(name) + (k - 0.5 * (len(measured) - 1)) * height for name in rows]
        times = [row["step_us"]["min"] for row in rows.values()]
        left.scatter(times, positions, 28, color=f"C{k}", label=robot, zorder=3)
        for x, y in zip(times, positions, strict=True):
            left.annotate(f"{x:.1f}", (x, y), (6, 0), textcoords="offset points", va="center", fontsize=7)
        creep = [max(row["creep_um_s"], LEAST_CREEP) for row in rows.values()]
        right.scatter(creep, positions, 28, color=f"C{k}", zorder=3)
    left.set_xlabel("time of a whole step [us], minimum over blocks")
    left.set_yticks(range(len(names)), [labels[name] for name in names])
    left.set_ylim(len(names) - 0.4, -0.6)
    left.margins(x=0.15)
    left.legend(fontsize=8)
    fraction = report["parameters"]["push_fraction"]
    right.set_xlabel(f"creep under {fraction:.0%} of the side load that tips the robot [um/s]")
    for axes in (left, right):
        axes.set_xscale("log" if names else "linear")
        axes.grid(axis="x", which="major", alpha=0.4)
        axes.set_axisbelow(True)
    ticks = [5, 10, 20, 50, 100, 200, 500, 1000]
    left.set_xticks(ticks, [str(tick) for tick in ticks])
    left.minorticks_off()
    figure.suptitle(f"Standing robots, h = {1e3 * report['parameters']['dt']:g} ms, one core", fontsize=11)
    figure.savefig(path, dpi=130)
    plt.close(figure)
