"""From rows to the bytes of a shard."""
