from .content import (
    OWN as OWN,
    changes as changes,
    code_content as code_content,
    digest_of as digest_of,
    own_content as own_content,
    package_digest as package_digest,
)
from .fields import (
    PerJoint as PerJoint,
    Polygon as Polygon,
    Vector as Vector,
    checked_seed as checked_seed,
    choices_of as choices_of,
    help_of as help_of,
    like as like,
    meaning_of as meaning_of,
    param as param,
    part_of as part_of,
    without_prefix as without_prefix,
)
from .files import (
    check_readable as check_readable,
    open_file as open_file,
    unreadable as unreadable,
    write_whole as write_whole,
)
from .html import facts as facts
from .json_text import to_json as to_json
from .live import (
    ParameterChange as ParameterChange,
    differences as differences,
    parse_changes as parse_changes,
    with_changes as with_changes,
)
from .plugins import Files as Files, Table as Table, import_own_module as import_own_module
from .progress import ProgressBar as ProgressBar
from .read import (
    HEIGHT_SUFFIXES as HEIGHT_SUFFIXES,
    SCENE_SUFFIX as SCENE_SUFFIX,
    check as check,
    check_all as check_all,
    flow_text as flow_text,
    from_file as from_file,
    from_folder as from_folder,
    from_mapping as from_mapping,
    in_braces as in_braces,
    is_path as is_path,
    number as number,
    numbers_per_joint as numbers_per_joint,
    per_joint as per_joint,
    read_text as read_text,
    read_xml as read_xml,
    read_yaml as read_yaml,
    together as together,
    valid_part as valid_part,
    yaml_value as yaml_value,
)
from .run import RunConfig as RunConfig
from .syntax import parse_json as parse_json, parse_xml as parse_xml, yaml_fault as yaml_fault
