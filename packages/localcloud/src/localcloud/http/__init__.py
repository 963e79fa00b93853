"""HTTP/1.1 between clients, the gateway and the servers behind it."""
