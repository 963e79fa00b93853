"""Where calls come in: gRPC and REST, checked, and handed to the family that answers."""
