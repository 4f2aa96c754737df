from .command import Command as Command
from .main import SAME_WISH as SAME_WISH
from .options import (
    OF_CONTACT as OF_CONTACT,
    add_fail_on_fall as add_fail_on_fall,
    add_option as add_option,
    add_recorded as add_recorded,
    add_run_option as add_run_option,
    add_run_options as add_run_options,
    add_span as add_span,
    code_of as code_of,
    fell_or_stopped as fell_or_stopped,
    key_values as key_values,
    option_name as option_name,
    program as program,
    run_config as run_config,
)
