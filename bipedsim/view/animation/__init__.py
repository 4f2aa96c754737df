"""Moving pictures of a run: the robot as links, its soles, the ground, the CoM and the contact forces.

:func:`bipedsim.view.animation.animate.animate` writes them. matplotlib takes a second to import, so that it is imported when
something is drawn.
"""
