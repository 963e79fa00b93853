"""The demonstration: one night of retraining, whole, on this machine.

Comes in: the checkout and its three environments. Goes out: a running local cloud and Airflow, one finished run of
`retrain__flight_delays`, and what it made, printed. Nothing in `dags/`, `plugins/` or `trainer/` knows of this package.
"""
