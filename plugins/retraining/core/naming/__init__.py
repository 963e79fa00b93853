"""The only place where a name, an address, a label or an id is made or parsed."""
