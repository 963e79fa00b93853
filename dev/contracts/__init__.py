"""Renders the contract from its one source, the pydantic models of `retraining.core.documents`.

What goes out: a JSON Schema per kind in `include/contracts`, and the trainer's frozen dataclasses in
`trainer/contract/documents`. Run by `make contracts`; a test compares bytes. Never shipped.
"""
