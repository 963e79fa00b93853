"""Proof that a champion was not trained on this run's test examples: what fingerprints prove, and what is left to read.

A key stands once in a run table (a check), so an example that is still in the span it had when the champion was trained
is in no test span of this run. A span whose fingerprint is the same now is therefore proven; of the others (changed
since, or older than the window) the keys are read by the evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.documents.export import Manifest, ManifestFile
from retraining.core.documents.snapshot import Snapshot

TRAINED_SPLITS = ("train", "validation")
"""Early stopping chooses by the validation split, so a champion has seen it too."""


def unproven_files(champion: Manifest, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """Return the champion's training files that the fingerprints do not prove free of this run's test examples.

    Args:
        champion: Manifest of the run that made the champion.
        snapshot: This run's.
    """
    now = {span.span: span.fingerprint for span in snapshot.spans}
    then = {span.span: span.fingerprint for span in champion.spans}
    return tuple(
        file
        for split in TRAINED_SPLITS
        for file in champion.splits[split].files  # type: ignore[index]  # mypy widens the loop's literals to str
        if file.span == "golden" or then.get(file.span) is None or now.get(file.span) != then[file.span]
    )


def unreadable_rows(champion: Manifest) -> int:
    """Return how many training rows the champion read from its run table itself: no file holds their keys."""
    splits = [champion.splits[split] for split in TRAINED_SPLITS]  # type: ignore[index]  # as above
    return sum(split.rows - sum(file.rows for file in split.files) for split in splits)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What is known of a champion's training examples, beside this run's test examples.

    Attributes:
        files: Training files that the evaluation reads for keys of this run's test examples.
        missing: Why not even that proves it, as the end of a sentence; None: with the files, everything is proven.
        known: Whether the record of what it was trained on is there.
    """

    files: tuple[ManifestFile, ...] = ()
    missing: str | None = None
    known: bool = True


PROVEN = Proof()
"""Nothing is left to read."""


def proof_from_afar(trained_on: Manifest, stage: str, snapshot: Snapshot) -> Proof:
    """Say what fingerprints alone prove of a champion that was taken over: its files are another stage's.

    They may go there at any time, and no run of this stage depends on it: its days decide then.

    Args:
        trained_on: The manifest that the model was trained on.
        stage: That it was taken over from.
        snapshot: This run's.
    """
    found, rows = unproven_files(trained_on, snapshot), unreadable_rows(trained_on)
    if not found and not rows:
        return PROVEN
    return Proof(missing=f"{len(found)} of the files that it was trained on are of stage {stage}, and are not read")


def proof(champion: Manifest | None, manifest_uri: str, snapshot: Snapshot) -> Proof:
    """Say what is left to read, and what nothing proves.

    Args:
        champion: Manifest of the run that made the champion; None: it is gone.
        manifest_uri: Where that manifest is, or was.
        snapshot: This run's.
    """
    if champion is None:
        return Proof(missing=f"{manifest_uri} is gone, which says what the champion was trained on", known=False)
    rows = unreadable_rows(champion)
    missing = f"the champion read {rows} rows from its run table itself, whose keys no file holds" if rows else None
    return Proof(files=unproven_files(champion, snapshot), missing=missing)
