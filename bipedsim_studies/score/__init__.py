"""The same test for every controller: a battery of runs, shares of success with intervals, a page (docs/score.md)."""
