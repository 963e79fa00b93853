"""Cloud Monitoring: what deployed models answered, measured, and the service that lists it."""
