from .gait import GaitReport, report_recording

__all__ = ["GaitReport", "report_recording"]
