"""Custom jobs: every replica a process."""
