"""What every family of resources keeps and asks: the store, buckets, operations, rules of single fields, faults."""
