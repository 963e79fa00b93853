"""A Google Cloud for one laptop: BigQuery, Cloud Storage, Vertex AI and Cloud Logging on loopback.

Servers speak the real wire protocols behind a gateway that ends TLS for the real host names, so unmodified
Google clients work by environment variables alone (`localcloud env` prints them).
For development and tests; production uses the real services with the same code.
"""
