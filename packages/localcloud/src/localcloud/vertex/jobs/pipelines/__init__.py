"""Training pipelines of custom tasks: a custom job, then its model in the registry."""
