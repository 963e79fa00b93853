"""A job on Vertex AI is made once, found again, followed to its end."""
