"""What people are told of a model, in which words, and when not again."""
