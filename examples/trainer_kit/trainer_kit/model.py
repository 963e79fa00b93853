"""A model on disk: the framework's own files, and `trainer.json`, which says what it reads and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer_kit.data import Array, Encoder
from trainer_kit.framework import Framework, Model
from trainer_kit.json_text import read_json
from trainer_kit.shards import Scalar

DESCRIPTION = "trainer.json"
"""Every model folder has it: what tells the rest of the system that the model is there."""


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A model with its encoder.

    Attributes:
        framework: That made it.
        model: The framework's.
        encoder: Features to matrix.
        label: `kind`, of several classes also `classes`.
    """

    framework: Framework
    model: Model
    encoder: Encoder
    label: Mapping[str, Any]

    def save(self, folder: Path) -> None:
        """Write the folder."""
        self.framework.save(self.model, folder)
        description = {
            "packages": dict(self.framework.packages),
            "features": list(self.encoder.features),
            "categories": {name: list(values) for name, values in self.encoder.categories.items()},
            "label": dict(self.label),
        }
        (folder / DESCRIPTION).write_text(json.dumps(description, indent=1, sort_keys=True), encoding="utf-8")

    @classmethod
    def load(cls, framework: Framework, folder: Path) -> StoredModel:
        """Read the folder; `require_digest` comes first, since a framework's own files may run code when loaded."""
        description: Any = read_json((folder / DESCRIPTION).read_bytes())
        encoder = Encoder(features=description["features"], categories=description["categories"])
        return cls(framework=framework, model=framework.load(folder), encoder=encoder, label=description["label"])

    def answer(self, columns: Mapping[str, Sequence[Scalar]]) -> Array:
        """Answer raw features. [rows] each → [rows], the number or the probability of 1, or [rows, classes]."""
        classes = None if self.label["kind"] == "regression" else self.label.get("classes", 2)
        answers = self.framework.predict(self.model, self.encoder.encode(columns), classes)
        return answers[:, 1] if self.label["kind"] == "binary" else answers
