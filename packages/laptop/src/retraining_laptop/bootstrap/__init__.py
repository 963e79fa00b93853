"""The command `retraining demo`, in Airflow's environment: makes the others, and starts the story in one of them.

Nothing here imports the local cloud, which is not installed beside Airflow.
"""
