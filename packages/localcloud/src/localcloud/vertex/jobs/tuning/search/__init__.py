"""What to try next, and when to stop: a study's space, algorithms and measurements; knows no store."""
