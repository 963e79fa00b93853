"""The trainer: exports BigQuery rows to TFRecord shards, trains a model on them, judges it on later days.

Runs as `python -m trainer.task {export,train,score,evaluate,separate} --request URI`, on Vertex AI as on a laptop.
What it is asked and what it answers are JSON documents (`trainer.contract.documents`); it imports nothing of
the Airflow side.
"""

__version__ = "0.2.0"
