"""Bridge to Unitree's low-level DDS topics ``rt/lowstate`` and ``rt/lowcmd``, as in unitree_sdk2 (docs/unitree.md)."""
