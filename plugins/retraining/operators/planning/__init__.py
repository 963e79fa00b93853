"""The first task: all that the run will do, written down."""
