"""Writing a version's card: from what the run's record says by then, over the one before."""

from __future__ import annotations

from retraining.core.documents import (
    Checks,
    Decision,
    Deployment,
    Evaluation,
    Manifest,
    ModelCard,
    Plan,
    Registration,
    Report,
)
from retraining.core.promotion.model_cards import model_card
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record


def write_card(cloud: CloudPort, record: Record, registration: Registration) -> None:
    """Write the card of a run's version; again when a task is tried again, with the same bytes."""
    card = model_card(
        record.read_document(Plan),
        record.read_document(Checks),
        record.read_document(Manifest),
        record.read_document(Report),
        record.read_document(Evaluation),
        record.read_document(Decision),
        registration,
        record.find_document(Deployment),
    )
    cloud.artifacts.overwrite(record.uri(ModelCard), card.to_bytes(), "application/json")
