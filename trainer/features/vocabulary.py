"""The categories' vocabulary: which id stands for which text, inside the stored model and beside a TF Lite one.

Comes in: a training's features and statistics. Goes out: ids by text, as a table for the model and as a JSON file for
an app, which looks its categories up itself: TF Lite has no tables of text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import CategoricalFeature, Feature, SequenceFeature, Statistics
from trainer.contract.json_text import read_json
from trainer.contract.statistics import statistics_of

MISSING_ID = 0
OTHER_ID = 1
FIRST_ID = 2


def codes_of(feature: CategoricalFeature | SequenceFeature, statistics: Statistics) -> dict[str, int]:
    """Return the id of every text that has one: 0 of the missing value "", and from 2 on by rank."""
    most = feature.max_vocabulary if feature.kind == "categorical" else None
    values = [item.value for item in statistics_of(feature, statistics).top if item.value != ""][:most]
    return {"": MISSING_ID, **{value: FIRST_ID + rank for rank, value in enumerate(values)}}


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Ids of all categories.

    Attributes:
        codes: By feature, by text. Any other text has the id 1.
    """

    codes: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, features: Sequence[Feature], statistics: Statistics) -> Vocabulary:
        """Take them from a training's statistics."""
        return cls(
            codes={
                feature.name: codes_of(feature, statistics)
                for feature in features
                if feature.kind == "categorical" or (feature.kind == "sequence" and feature.of == "categorical")
            }
        )

    @classmethod
    def read(cls, content: bytes) -> Vocabulary:
        """Read what `serialise` gave."""
        document: Any = read_json(content)
        return cls(codes=document["codes"])

    def serialise(self) -> bytes:
        """Return the file for an app."""
        document = {"missing": MISSING_ID, "other": OTHER_ID, "codes": self.codes}
        return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()

    def encode(self, raw: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Replace the texts of categories by their ids. [n] or [n, length] of UTF-8 bytes each → int32."""
        return {name: _encode(self.codes[name], raw[name]) if name in self.codes else raw[name] for name in raw}


def _encode(codes: Mapping[str, int], texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    distinct, places = np.unique(texts, return_inverse=True)
    ids = np.array([codes.get(text.decode(), OTHER_ID) for text in distinct], np.int32)
    return ids[places].reshape(texts.shape)
