from .gait import GaitReport as GaitReport, report_recording as report_recording
