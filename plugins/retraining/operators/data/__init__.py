"""The run table, and whether its examples are fit to train on."""
