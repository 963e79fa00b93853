"""`maintain`, the DAG of Airflow that deletes what no run refers to any more."""

from retraining.dags import build_dags

globals().update(build_dags("maintain"))
