"""A walk-forward: versions as of many dates, scored on the days that followed: how they age, what retraining pays."""
