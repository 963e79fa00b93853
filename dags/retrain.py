"""`retrain__<model>`, a DAG of Airflow per file in include/models: from the plan to the endpoint."""

from retraining.dags import build_dags

globals().update(build_dags("retrain"))
