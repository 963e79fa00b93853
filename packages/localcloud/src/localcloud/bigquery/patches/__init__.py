"""One file per fault of bqemulator: what is wrong, and what is put in its place before its server starts.

A test asks the unpatched emulator too, and fails when it has become right: then the file goes.
"""
