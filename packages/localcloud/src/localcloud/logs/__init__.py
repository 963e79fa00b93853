"""Cloud Logging: entries, filters, and the service that lists them."""
