"""What an experiment tracker shows of a run: made of its documents, in each service's form. Nothing is sent."""
