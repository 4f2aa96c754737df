from .command import Command
from .options import add_contact_options, add_plant_options, add_run_options, key_values, plant_settings, run_settings

__all__ = [
    "Command",
    "add_contact_options",
    "add_plant_options",
    "add_run_options",
    "key_values",
    "plant_settings",
    "run_settings",
]
