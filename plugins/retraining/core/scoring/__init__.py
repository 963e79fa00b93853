"""Table, version and time → the plan of a scoring in bulk, its job, and whether every row has its answer."""
