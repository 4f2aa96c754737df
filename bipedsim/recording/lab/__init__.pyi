from .c3d import one_clock, write_c3d
from .c3d_reader import read_c3d
from .opensim import loads_xml, read_forces, read_storage, write_forces, write_storage, write_text, write_trc
from .read import LAB_SUFFIXES, read_trial
from .tables import Table, write_csv, write_mat, write_parquet
from .trial import Y_UP, Event, LabTrial, Markers

__all__ = [
    "LAB_SUFFIXES",
    "Y_UP",
    "Event",
    "LabTrial",
    "Markers",
    "Table",
    "loads_xml",
    "one_clock",
    "read_c3d",
    "read_forces",
    "read_storage",
    "read_trial",
    "write_c3d",
    "write_csv",
    "write_forces",
    "write_mat",
    "write_parquet",
    "write_storage",
    "write_text",
    "write_trc",
]
