"""Functions in JavaScript: their types, the process that runs them, and what DuckDB calls."""
