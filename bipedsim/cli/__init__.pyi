from .command import CliCommand as CliCommand
from .main import SAME_WISH as SAME_WISH
from .options import (
    IN_SCENARIO as IN_SCENARIO,
    add_fail_on_fall as add_fail_on_fall,
    add_groups as add_groups,
    add_option as add_option,
    add_recorded as add_recorded,
    add_set as add_set,
    add_span as add_span,
    chosen as chosen,
    code_of as code_of,
    fell_or_stopped as fell_or_stopped,
    option_name as option_name,
    program as program,
    split_params as split_params,
    topic_pairs as topic_pairs,
)
