"""Types of columns, tables and results."""
