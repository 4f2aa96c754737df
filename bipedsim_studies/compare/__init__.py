"""``bipedsim compare``: one run under several contact models, side by side; docs/compare.md defines every figure."""
