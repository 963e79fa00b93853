"""Retraining on Google Cloud from Airflow: `core` decides, `hooks` talk, `operators` act."""

__version__ = "0.2.0"
