from .deployment import read_deployment

__all__ = ["read_deployment"]
