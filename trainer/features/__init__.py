"""From the columns of an example, or of a request, to what a model reads."""
