from .c3d import one_clock as one_clock, write_c3d as write_c3d
from .c3d_reader import read_c3d as read_c3d
from .opensim import (
    loads_xml as loads_xml,
    read_forces as read_forces,
    read_storage as read_storage,
    write_forces as write_forces,
    write_storage as write_storage,
    write_trc as write_trc,
)
from .read import is_trial as is_trial, read_trial as read_trial
from .tables import LabTable as LabTable, write_csv as write_csv, write_mat as write_mat, write_parquet as write_parquet
from .trial import Y_UP as Y_UP, Event as Event, LabTrial as LabTrial, Markers as Markers
