"""Request log in; drift, and whether it is worth a retraining, out."""
