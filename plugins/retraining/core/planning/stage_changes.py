"""What differs between two stages of a model, and what follows for its runs.

In: a model's spec as each stage has it. Out: its keys with both values, and whether a run's key depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_core import to_jsonable_python

from retraining.core.leaves import leaves
from retraining.core.planning.plan import deciding_spec, with_validation
from retraining.core.spec.model import ModelSpec

NOT_SET = "not set"


@dataclass(frozen=True, kw_only=True)
class StageChange:
    """A key whose value is another one, as JSON; `decides`: the run's key is another one by it."""

    key: str
    before: str
    now: str
    decides: bool


def stage_changes(before: ModelSpec, now: ModelSpec) -> list[StageChange]:
    """Return the keys of a spec that differ, by name."""
    old, new = (_all_leaves(with_validation(spec)) for spec in (before, now))
    deciding_old, deciding_new = (dict(leaves(deciding_spec(with_validation(spec)))) for spec in (before, now))
    return [
        StageChange(
            key=key,
            before=old.get(key, NOT_SET),
            now=new.get(key, NOT_SET),
            decides=deciding_old.get(key) != deciding_new.get(key),
        )
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _all_leaves(spec: ModelSpec) -> dict[str, str]:
    """Return every value by its path, also of keys that no document keeps."""
    of_the_file = [name for name, field in ModelSpec.model_fields.items() if field.exclude]
    kept_nowhere = {name: to_jsonable_python(getattr(spec, name)) for name in of_the_file}
    return dict(leaves({**spec.model_dump(mode="json"), **kept_nowhere}))
