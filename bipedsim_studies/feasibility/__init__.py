"""Check whether feet stay in their contact state: conditions on torques and on velocities before impacts.

Source: Hurmuzlu, Genot and Brogliato 2001, appendices A and B; docs/stability.md.
"""
