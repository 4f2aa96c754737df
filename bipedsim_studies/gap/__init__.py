"""Predict the measurements of a robot from its recorded commands, and compare the errors with those of simple rules.

The modules, from low level to high level:

- :mod:`recorded`: the recorded signals and commands, in the robot's order;
- :mod:`floor`: the noise of a signal from the signal itself;
- :mod:`conventions`: sensors with other signs, or without gravity;
- :mod:`models`: a simulator that predicts measurements without noise;
- :mod:`footing`: states whose loaded feet rest on the ground;
- :mod:`starts`: the states from which predictions start, estimated from measurements;
- :mod:`signals`: the predicted quantities and their errors;
- :mod:`trivial`: the errors of simple rules;
- :mod:`predict`: the errors of all windows;
- :mod:`paired`: the interval of the difference between two models;
- :mod:`report`: the table, the figure and the JSON;
- :mod:`compare`: the errors of one or two models.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
