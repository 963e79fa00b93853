"""Statistics in, findings out: whether the examples are fit to train on."""
