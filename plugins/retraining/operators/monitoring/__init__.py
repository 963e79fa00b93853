"""A champion's requests are measured, and a retraining ordered where it is worth it."""
