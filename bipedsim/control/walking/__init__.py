"""What a walking controller is made of: footsteps, DCM plan, swing, whole-body accelerations, wrenches of the feet."""
