"""The Models page in Airflow's UI."""
