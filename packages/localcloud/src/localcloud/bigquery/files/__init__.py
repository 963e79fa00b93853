"""Load and extract jobs: rows from files, and files from rows."""
