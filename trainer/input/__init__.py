"""TFRecord shards → `tf.data`: fetched and proven against the manifest, parsed in whole batches, shuffled by seed."""
