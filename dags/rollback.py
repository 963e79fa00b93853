"""`rollback`, the DAG of Airflow by which a person gives an earlier version the traffic back."""

from retraining.dags import build_dags

globals().update(build_dags("rollback"))
