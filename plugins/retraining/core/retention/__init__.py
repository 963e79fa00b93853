"""What may be deleted, and why everything else stays."""
