"""Whether the feet stay as they are: conditions on torques and on velocities before impacts, and what they are for.

Source: Hurmuzlu, Genot and Brogliato 2001, appendices A and B; docs/stability.md.
"""
