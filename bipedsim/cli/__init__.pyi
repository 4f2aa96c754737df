from .command import Command
from .main import SAME_WISH
from .options import (
    OF_CONTACT,
    add_fail_on_fall,
    add_option,
    add_recorded,
    add_run_option,
    add_run_options,
    add_span,
    code_of,
    fell_or_stopped,
    key_values,
    option_name,
    program,
    run_config,
)

__all__ = [
    "OF_CONTACT",
    "SAME_WISH",
    "Command",
    "add_fail_on_fall",
    "add_option",
    "add_recorded",
    "add_run_option",
    "add_run_options",
    "add_span",
    "code_of",
    "fell_or_stopped",
    "key_values",
    "option_name",
    "program",
    "run_config",
]
