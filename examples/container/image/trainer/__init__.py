"""A training of one's own, in place of this project's trainer."""
