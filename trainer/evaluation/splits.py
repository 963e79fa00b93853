"""Which splits of a run a comparison reads. Imports nothing of TensorFlow: files are fetched while that is imported."""

from __future__ import annotations

from dataclasses import replace

from trainer.contract.documents import EvaluateRequest, Manifest, ManifestSplit

FROZEN, VALIDATION, TRAIN = "golden", "validation", "train"


def needs_validation(request: EvaluateRequest) -> bool:
    """Return whether a threshold is chosen on the validation split."""
    return request.threshold is not None and request.threshold.rule != "number"


def splits_of(request: EvaluateRequest) -> set[str]:
    """Return the names of all splits that are read."""
    asked = {request.split: True, FROZEN: request.golden, VALIDATION: needs_validation(request)}
    return {name for name, there in asked.items() if there}


def chosen_splits(request: EvaluateRequest, manifest: Manifest) -> dict[str, ManifestSplit]:
    """Return what is read of a manifest: splits as they are, and of the training split some files.

    Reference lines need no more rows than the request says: files are drawn until they have as many, by the request's
    seed, and read in the manifest's sequence.
    """
    splits = {name: split for name, split in manifest.splits.items() if name in splits_of(request)}
    train = manifest.splits.get(TRAIN)
    if request.reference and train and train.files:
        splits[TRAIN] = _some_files(train, request.reference.rows, request.reference.seed)
    return splits


def _some_files(split: ManifestSplit, rows: int, seed: int) -> ManifestSplit:
    chosen, there = [], 0
    import numpy as np  # when shards are chosen, not when the command line is read

    for place in np.random.default_rng(seed).permutation(len(split.files)).tolist():
        if there >= rows:
            break
        chosen.append(place)
        there += split.files[place].rows
    return replace(split, rows=there, files=tuple(split.files[place] for place in sorted(chosen)))
