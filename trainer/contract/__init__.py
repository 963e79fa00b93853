"""What the trainer is asked and answers: documents, reading and writing them, and what they say of column types."""
