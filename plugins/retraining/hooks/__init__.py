"""The talking floor: one module per Google service. Nothing is decided here; Google is imported when it is asked."""
