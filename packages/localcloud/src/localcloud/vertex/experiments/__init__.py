"""What Vertex AI Experiments is made of: ML Metadata, and TensorBoards."""
