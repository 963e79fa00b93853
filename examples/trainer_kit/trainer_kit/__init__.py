"""What a trainer of another framework needs of this system's contract; no TensorFlow, and nothing of `trainer`."""
