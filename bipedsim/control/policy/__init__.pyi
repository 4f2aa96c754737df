from .policy import PolicyController, PolicyParams

__all__ = ["PolicyController", "PolicyParams"]
