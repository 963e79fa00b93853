"""Where a job's time and memory go."""
