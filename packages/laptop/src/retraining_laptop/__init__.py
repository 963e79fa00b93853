"""The local cloud and an Airflow around somebody's models, on one machine.

Comes in: a repository of models, and data for them. Goes out: a running local cloud and Airflow, and a finished run of
a model's DAG, told. Nothing in `retraining` or the trainer knows of this package.
"""
