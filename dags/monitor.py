"""`monitor__<model>`, a DAG of Airflow per file in include/models: is the champion still good?"""

from retraining.dags import build_dags

globals().update(build_dags("monitor"))
