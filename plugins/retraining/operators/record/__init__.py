"""A run's folder of documents: whose it is, what is in it, and its lease on the spans it relies on."""
