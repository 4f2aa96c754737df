from .fields import from_mapping, param, read_yaml
from .plugins import Files, Table

__all__ = ["Files", "Table", "from_mapping", "param", "read_yaml"]
