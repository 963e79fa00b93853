"""Cloud Storage: what the storage server does differently from the service, on the way to it."""
