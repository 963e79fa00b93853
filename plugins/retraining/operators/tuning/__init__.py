"""The search for hyperparameters, and what earlier ones left."""
