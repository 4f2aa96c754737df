"""Bodies and walkers of the papers, one folder each."""
