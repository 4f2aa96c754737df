"""What is computed from recordings and from the models: force plates and more."""
