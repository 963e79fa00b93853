"""Addresses, labels, ids and keys: made here, and read back."""
