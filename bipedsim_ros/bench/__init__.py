"""``bipedsim bench --loop``: what the loop over ROS costs beside the least that two processes can do."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
