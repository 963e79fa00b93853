"""The DAG `score__<model>`: a table is scored in bulk, once, and its answers replace a table or a day of it."""
