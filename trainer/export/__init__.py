"""BigQuery → TFRecord shards. No TensorFlow is imported here: an export replica starts in a second and stays small."""
