from .fields import Polygon, Vector, choices_of, help_of, like, meaning_of, param, part_of, without_prefix
from .html import facts
from .json_text import to_json
from .plugins import Files, Table
from .read import (
    check,
    from_file,
    from_folder,
    from_mapping,
    is_path,
    number,
    numbers_per_joint,
    per_joint,
    read_text,
    read_yaml,
    together,
    yaml_value,
)
from .run import RunConfig

__all__ = [
    "Files",
    "Polygon",
    "RunConfig",
    "Table",
    "Vector",
    "check",
    "choices_of",
    "facts",
    "from_file",
    "from_folder",
    "from_mapping",
    "help_of",
    "is_path",
    "like",
    "meaning_of",
    "number",
    "numbers_per_joint",
    "param",
    "part_of",
    "per_joint",
    "read_text",
    "read_yaml",
    "to_json",
    "together",
    "without_prefix",
    "yaml_value",
]
