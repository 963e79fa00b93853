"""The daily cleaning: what is left over is found, and deleted."""
