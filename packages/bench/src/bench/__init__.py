"""Benchmarks: `make bench-…`. Each contender runs in a process of its own, in turns."""
