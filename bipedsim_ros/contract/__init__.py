"""What a controller expects of a robot's topics, and whether a live graph or a bag is so: ``bipedsim check-robot``."""
