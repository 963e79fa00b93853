"""The Storage Read API."""
