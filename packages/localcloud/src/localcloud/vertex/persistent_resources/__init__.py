"""Persistent resources: machines that stay between jobs, and the custom jobs that run on them."""
