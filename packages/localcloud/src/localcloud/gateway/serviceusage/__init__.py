"""Service Usage: which APIs a project has enabled."""
