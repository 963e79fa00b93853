"""The acting floor: thin Airflow operators. Each reads the record, asks a hook, asks `core`, writes a document."""
