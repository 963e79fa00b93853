"""The Models page: all models, and each of them with its history, from documents that tasks keep up to date."""
