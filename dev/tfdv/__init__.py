"""TensorFlow Data Validation beside a run, in an environment of its own."""
