"""`machine_pool__<name>`, a DAG of Airflow per file in include/pools."""

from retraining.dags import build_dags

globals().update(build_dags("machine_pools"))
