"""What is Airflow's own: the edge to it, links, schedules, Params, and what it says of a DAG run."""
