"""The model on disk, and the requests it was tried with."""
