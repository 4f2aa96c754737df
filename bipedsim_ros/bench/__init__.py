"""Compare the loop over ROS with the minimum that two processes can achieve (``bipedsim bench --loop``)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
