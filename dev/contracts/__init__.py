"""Renders the contract from its one source, the pydantic models of `retraining.core.documents`.

What goes out: JSON Schemas of the kinds that a trainer of one's own meets, in the package data of `retraining`, the
trainer's frozen dataclasses in `trainer/contract/documents`, and how JSON text is read. Run by `make contracts`; a test
compares bytes. Never shipped.
"""
