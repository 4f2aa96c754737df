"""Search the largest push that a controlled robot recovers from, in several directions (docs/push_map.md)."""
