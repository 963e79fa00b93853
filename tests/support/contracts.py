"""What tests of documents share: where examples are, and what of a document was not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMAS = _REPOSITORY / "plugins" / "retraining" / "package_data" / "contracts"
EXAMPLES = _REPOSITORY / "tests" / "contracts" / "examples"
STORED = _REPOSITORY / "tests" / "stored"
"""A document of each kind that an earlier release stored."""
FURTHER = {
    "checks__quarantined": "a finding of one span",
    "decision__record": "a comparison that is only written down",
    "decision__reject": "a challenger that stays behind; the page tells it",
    "evaluate_request__lite": "a converted model is judged too",
    "evaluate_request__numbers": "columns that a number is held against",
    "evaluation__classes": "counts of labels by class",
    "evaluation__lite": "scores of converted models",
    "evaluation__numbers": "metrics, baselines and answers of a number",
    "report__images": "an instance with an image; scores of several classes",
    "report__sequences": "an instance with lists",
    "statistics__classes": "statistics of times and bags; texts that are no class",
    "statistics__images": "statistics of an image; labels outside the known classes",
    "statistics__numbers": "statistics of a label that is a number",
    "statistics__sequences": "statistics of a sequence",
    "train_request__classes": "texts as classes; times and bags",
    "train_request__quantiles": "a label that is a number",
    "train_request__sequences": "features with steps",
}
"""Why a kind has more than two examples: what of its form the two do not show."""
VALID = sorted([*EXAMPLES.glob("*.json"), *STORED.glob("*.json")])


def kind_of(path: Path) -> str:
    """Return the kind of an example, by its file's name."""
    return path.stem.split("__")[0]


def missing(stored: Any, read: Any, path: str) -> Iterator[str]:
    """Yield what stands in a stored document and was not read, by its path; further keys with defaults may come."""
    if isinstance(stored, dict) and isinstance(read, dict):
        for key, value in stored.items():
            yield from missing(value, read.get(key), f"{path}.{key}")
    elif isinstance(stored, list) and isinstance(read, list) and len(stored) == len(read):
        for index, pair in enumerate(zip(stored, read, strict=True)):
            yield from missing(*pair, f"{path}[{index}]")
    elif stored != read:
        yield path
