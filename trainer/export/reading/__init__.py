"""From the run table to a shard's rows, in file order."""
