"""`walk_forward__<model>`, a DAG of Airflow per model: what retraining pays."""

from retraining.dags import build_dags

globals().update(build_dags("walk_forward"))
