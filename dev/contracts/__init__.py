"""Renders the contract from its one source, the pydantic models of `retraining.core.documents`.

What goes out: a JSON Schema per kind in `include/contracts`, the trainer's frozen dataclasses in
`trainer/contract/documents`, and how JSON text is read. Run by `make contracts`; a test compares bytes. Never shipped.
"""
