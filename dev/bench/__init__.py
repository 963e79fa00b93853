"""Benchmarks: `make bench-export`, `make bench-input`. Each contender runs in a process of its own, in turns."""
