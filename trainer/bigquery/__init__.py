"""Rows of a table through the BigQuery Storage Read API, for whoever exports them or trains on them."""
