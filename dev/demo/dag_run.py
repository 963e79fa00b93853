"""The model that the demonstration retrains, and its DAG."""

MODEL = "flight_delays"
DAG_ID = f"retrain__{MODEL}"
