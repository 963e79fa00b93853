"""The examples: SQL text, and what is read from its rows."""
