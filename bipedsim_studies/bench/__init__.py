"""Step time, stiction and accuracy of our contact models and of other engines, on the same robots in one run."""
