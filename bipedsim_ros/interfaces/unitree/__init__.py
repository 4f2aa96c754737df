"""Unitree's low-level DDS topics: ``rt/lowstate`` and ``rt/lowcmd``, as unitree_sdk2 speaks them (docs/unitree.md)."""
