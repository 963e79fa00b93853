"""What is left running is ended, and the run gets its state."""
