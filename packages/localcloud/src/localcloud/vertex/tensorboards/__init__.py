"""Vertex AI TensorBoard: what a training reported at each step, by experiment, run and time series."""
