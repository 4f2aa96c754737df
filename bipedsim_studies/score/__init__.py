"""Score every controller with the same battery of runs: success rates with intervals, and a page (docs/score.md)."""
