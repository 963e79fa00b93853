"""`notify_test`, the DAG of Airflow by which a person tries who is told of a model."""

from retraining.dags import build_dags

globals().update(build_dags("notify_test"))
