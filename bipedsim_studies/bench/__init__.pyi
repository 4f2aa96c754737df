from .run import machine as machine
