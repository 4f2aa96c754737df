from .importing import Imported, import_robot

__all__ = ["Imported", "import_robot"]
