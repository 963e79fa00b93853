"""ML Metadata: stores of metadata, and the contexts in them that Vertex AI Experiments is made of."""
