"""The deciding floor: pure functions and values. No Airflow, no Google client, no clock, no network."""
