"""What a person types in a shell."""
