"""Compare one run under several contact models; docs/compare.md defines every metric."""
