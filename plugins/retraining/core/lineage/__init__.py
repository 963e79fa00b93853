"""What a task read and wrote, and of which run: by the names of OpenLineage, as values. Nothing is sent here."""
