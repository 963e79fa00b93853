"""Builds the images and runs docker-compose.yaml with podman, for the tests that `make containers` runs."""
