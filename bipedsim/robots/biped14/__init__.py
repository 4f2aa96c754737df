"""The 14-joint adult-sized biped: URDF, configuration and the anthropometric data that the URDF is made from."""
