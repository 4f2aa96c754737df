"""The planar biped with nine degrees of freedom: URDF, configuration, and the data that the URDF is made from."""
