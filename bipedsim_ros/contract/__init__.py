"""Check whether the topics of a robot, live or in a bag, are as a controller expects (``bipedsim check-robot``)."""
