"""Whether a study runs, what it starts from, and what came of it."""
