from .estimation import Estimate as Estimate, estimate as estimate
from .parameters import KINDS as KINDS, Parameters as Parameters, parameters_of as parameters_of
from .signals import Signals as Signals, predicted as predicted, signals_of as signals_of
