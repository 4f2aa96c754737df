"""Studies with the simulator: papers, impact laws, stability, margins, push maps, comparisons."""
