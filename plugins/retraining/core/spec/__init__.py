"""What a user writes: YAML and SQL in, a checked ModelSpec out."""
