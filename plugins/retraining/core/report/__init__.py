"""What a run says of itself: its page for people, from its documents, and its state for Airflow."""
