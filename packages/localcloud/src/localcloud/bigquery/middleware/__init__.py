"""What stands before the REST API: faults, and the IAM table."""
