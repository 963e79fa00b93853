"""What a model is asked and what it answers: how a new version's serving signature differs from the champion's.

In: the signatures of two training reports. Out: what is gone, new or of another type, and a digest of exactly that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

from retraining.core.documents.document import canonical_json, digest
from retraining.core.documents.training import Shapes, Signature

DIGEST_LENGTH = 16
"""Of `deployment.accept_signature`, in hex digits."""


@dataclass(frozen=True, order=True)
class SignatureChange:
    """An input or output that applications meet otherwise; `before` or `after` is None where there was or is none."""

    side: str
    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """Return the change in words."""
        if self.before is None:
            return f"{self.side} `{self.name}` ({self.after}) is new"
        if self.after is None:
            return f"{self.side} `{self.name}` is gone"
        return f"{self.side} `{self.name}` is {self.after} and was {self.before}"


def signature_changes(before: Signature, after: Signature) -> list[SignatureChange]:
    """Return what differs, inputs first; shapes are compared where both are known."""
    sides = (
        ("input", (before.inputs, before.input_shapes), (after.inputs, after.input_shapes)),
        ("output", (before.outputs, before.output_shapes), (after.outputs, after.output_shapes)),
    )
    return sorted(change for side, old, new in sides for change in _side_changes(side, *old, *new))


def changes_digest(changes: Sequence[SignatureChange]) -> str:
    """Return the digest by which a spec accepts exactly these changes."""
    return digest(canonical_json([astuple(change) for change in changes]))[:DIGEST_LENGTH]


def _side_changes(
    side: str, old: Mapping[str, str], old_shapes: Shapes | None, new: Mapping[str, str], new_shapes: Shapes | None
) -> Iterator[SignatureChange]:
    if old_shapes is None or new_shapes is None:
        old_shapes = new_shapes = {}
    for name in {**old, **new}:
        before, after = _form(name, old, old_shapes), _form(name, new, new_shapes)
        if before != after:
            yield SignatureChange(side, name, before, after)


def _form(name: str, types: Mapping[str, str], shapes: Shapes) -> str | None:
    """Return the type and the sizes beside the batch, as `STRING[?]`."""
    if name not in types:
        return None
    sizes = ", ".join("?" if size < 0 else str(size) for size in shapes.get(name, ()))
    return types[name].upper() + (f"[{sizes}]" if sizes else "")
