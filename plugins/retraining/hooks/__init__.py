"""The talking floor: one module per Google service. Nothing is decided here, and no Google library is imported early."""
