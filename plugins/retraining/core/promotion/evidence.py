"""Whether a measurement rests on enough examples to be judged, and what people are told where it does not."""

from __future__ import annotations

from typing import TypeGuard

from retraining.core.documents.evaluation import Evidence
from retraining.core.spec.model import ModelSpec


def is_short(evidence: Evidence | None) -> TypeGuard[Evidence]:
    """Return whether there is too little; what an earlier release measured, which does not say, was judged."""
    return evidence is not None and evidence.effective < evidence.needed


def describe_shortage(evidence: Evidence) -> str:
    """Return what there is, and how much is needed: `3 positives, 20 are needed`."""
    shown = f"{evidence.count} {evidence.units}" if evidence.count else f"no {evidence.units}"
    uneven = f" that say as much as {evidence.effective:.2f} equal ones" if evidence.count >= evidence.needed else ""
    return f"{shown}{uneven}, {evidence.needed} are needed"


def way_out(spec: ModelSpec, evidence: Evidence) -> str:
    """Return how the next run has more."""
    window = "lengthen data.test_days" if spec.data.split == "time" else "raise data.test_percent"
    return f"{window}, or group by another column in evaluation.group" if "groups" in evidence.units else window
