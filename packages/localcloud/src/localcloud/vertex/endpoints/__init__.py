"""Endpoints: what is deployed there, how traffic is shared, predictions and their log."""
