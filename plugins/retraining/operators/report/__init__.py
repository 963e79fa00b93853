"""The run's page for people."""
