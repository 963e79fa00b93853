"""`score__<model>`, a DAG of Airflow per model with a section `scoring`."""

from retraining.dags import build_dags

globals().update(build_dags("score"))
