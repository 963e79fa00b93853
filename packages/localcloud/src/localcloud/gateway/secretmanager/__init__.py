"""Secret Manager: secrets and their versions, over gRPC and REST."""
