"""Servers as child processes: started together, watched, ended together."""
