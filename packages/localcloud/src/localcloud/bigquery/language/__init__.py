"""What GoogleSQL is: the words, functions, types and clauses that BigQuery reads, apart from those of other databases.

sqlglot's parser takes the syntax of thirty databases, and DuckDB answers its own functions: `LISTAGG`, `x ILIKE y`,
`DISTINCT ON`, `SEMI JOIN`, a DELETE without WHERE. In: a statement as it was sent. Out: what BigQuery says of it, what
of it is not offered here, or nothing.
"""
