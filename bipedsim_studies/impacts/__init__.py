"""Impact laws of the literature, as functions."""
