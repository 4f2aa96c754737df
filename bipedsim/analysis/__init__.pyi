from .ankles import (
    centre_of_pressure as centre_of_pressure,
    fill_from_ankles as fill_from_ankles,
    sole_wrench as sole_wrench,
)
from .com import ComMotion as ComMotion, capture_point as capture_point, com_motion as com_motion
from .configurations import (
    complete_rows as complete_rows,
    name_of as name_of,
    recorded_configurations as recorded_configurations,
)
from .controller import controller_figures as controller_figures, estimate_errors as estimate_errors
from .controller_stop import ControllerStop as ControllerStop
from .ending import Fall as Fall, FallKind as FallKind, FallReason as FallReason, with_stop as with_stop
from .fall import OUTCOME as OUTCOME, fall_time as fall_time, has_fallen as has_fallen
from .feet import (
    creep_rate as creep_rate,
    lifts as lifts,
    settled_rows as settled_rows,
    sole_depth as sole_depth,
    sole_drift as sole_drift,
)
from .force_plates import (
    PlateRun as PlateRun,
    PlateSum as PlateSum,
    contact_figures as contact_figures,
    contacts as contacts,
    filtered as filtered,
    load_plates as load_plates,
    plate_figures as plate_figures,
    plate_table as plate_table,
    running_mean as running_mean,
    sum_of_plates as sum_of_plates,
)
from .gait import Step as Step, gait_steps as gait_steps, without_bounces as without_bounces
from .lab_trial import (
    FRAMES as FRAMES,
    Frame as Frame,
    coordinates as coordinates,
    filter_text as filter_text,
    gait_events as gait_events,
    ideal_plates as ideal_plates,
    lab_table as lab_table,
    run_markers as run_markers,
    run_trial as run_trial,
)
from .limit_distances import NearLimit as NearLimit, joint_limits as joint_limits, near_limits as near_limits
from .loading import Gathers as Gathers, completed as completed, gather as gather, load_run as load_run
from .loads import CARRIES as CARRIES, PRESSES as PRESSES
from .metric_differences import (
    Difference as Difference,
    difference_lines as difference_lines,
    differences as differences,
)
from .objects import object_figures as object_figures
from .plate_gait import (
    PlateGait as PlateGait,
    Stance as Stance,
    find_gait as find_gait,
    gait_summary as gait_summary,
    gait_table as gait_table,
)
from .plate_grid import (
    Grid as Grid,
    expected as expected,
    grid_lines as grid_lines,
    grid_test as grid_test,
    read_plate as read_plate,
)
from .plates import (
    ForcePlate as ForcePlate,
    cop_under_soles as cop_under_soles,
    force_plate as force_plate,
    low_pass as low_pass,
    other_bodies as other_bodies,
    roll_pitch_yaw as roll_pitch_yaw,
    rotate as rotate,
    sample_rate as sample_rate,
    standing_rows as standing_rows,
    summary as summary,
    world_wrench as world_wrench,
)
from .posturography import stood_still as stood_still, sway_figures as sway_figures, sway_lines as sway_lines
from .recorded_robot import compare_robot as compare_robot, robot_of as robot_of, unused_joints as unused_joints
from .run_summary import RunSummary as RunSummary, with_statistics as with_statistics
from .summary_text import (
    aligned as aligned,
    in_words as in_words,
    length_text as length_text,
    missed_share as missed_share,
    no_command_text as no_command_text,
    physics_text as physics_text,
    readout_text as readout_text,
    resolution_of as resolution_of,
    silence_text as silence_text,
    summary_lines as summary_lines,
    unit_of as unit_of,
)
from .verdict import BRIEF as BRIEF, Verdict as Verdict
