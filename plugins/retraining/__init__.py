"""Retraining on Google Cloud from Airflow: `core` decides, `hooks` talk, `operators` act."""
