"""The acting floor: thin Airflow operators. Each reads the run's record, asks a hook, asks `core`, and writes a document."""
