"""A first YAML and SQL file of a model, from what its table holds: valid, short, every guess marked as one.

In: what the user says, and the table's profile. Out: two texts.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retraining.core.data.column_roles import types_of
from retraining.core.data.sql import render
from retraining.core.data.table_profile import NewModel, TableProfile, reason_left_out
from retraining.core.errors import DataError

MAX_LINES = 30
_MAX_FEATURE_LINES = 8
_MAX_LEFT_OUT_LINES = 2
_WIDTH = 116
_MAX_CLASSES = 1000
_TEST_PERCENT = 10
_ALIKE = 4
"""Columns of one beginning that are worth a pattern."""
_BEGINNING = re.compile(r"[A-Za-z0-9]+_|[A-Za-z]+(?=[0-9]+$)")
_YAML_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """The texts of `include/models/<name>.yaml` and `include/sql/<name>/examples.sql`."""

    yaml: str
    sql: str


@dataclass(frozen=True, kw_only=True)
class _Label:
    """What the label is, why, and what a model of it must reach."""

    text: str
    note: str
    metric: str
    min_value: float


def write_model(model: NewModel, profile: TableProfile) -> ModelFiles:
    """Return the files of a model that `make check-models` takes.

    Raises:
        DataError: The label is none that can be learnt, or no column is left to be a feature.
    """
    label, kinds, left_out = _guess_label(model, profile), {}, []
    for found in profile.columns:
        name = found.column.name
        if name in (model.key, model.time, model.label):
            continue
        if reason := reason_left_out(found, profile.rows):
            left_out.append(f"{name} ({reason})")
        else:
            kinds[name] = "numeric" if found.column.type in types_of("numeric") else "categorical"
    if not kinds:
        reasons = f"no feature: {', '.join(left_out) or 'no other column'}"
        raise DataError(model.source, reasons, "numbers or categories", model.way_out("has some"))
    days, window = profile.days, min(60, max(2, profile.days))
    test_days = min(7, max(1, window // 8))
    rows_per_day = profile.rows / days
    tested = rows_per_day * test_days if model.time else profile.rows * _TEST_PERCENT / 100
    yaml = render(
        "new_model.yaml.j2",
        model=model,
        profile=profile,
        key=_scalar(model.key),
        time=_scalar(model.time),
        key_note=_key_note(profile),
        window_days=window,
        test_days=test_days,
        min_rows=max(1, int(rows_per_day * min(window, days) / 2)),
        test_percent=_TEST_PERCENT,
        min_examples=max(1, min(1000, int(tested / 2))),
        features=_feature_lines(kinds),
        left_out=_left_out_lines(left_out),
        label=label,
    )
    of_type = profile.of_column(model.time).column.type if model.time else "TIMESTAMP"
    columns = [model.key, *([model.time] if model.time else []), *kinds, model.label]
    sql = render("new_model.sql.j2", model=model, columns=columns, convert="" if of_type == "TIMESTAMP" else of_type)
    return ModelFiles(yaml=yaml, sql=sql)


def _guess_label(model: NewModel, profile: TableProfile) -> _Label:
    found, low, high = profile.of_column(model.label), profile.label_low, profile.label_high
    values = f"{found.distinct} values from {low} to {high}"
    name = _scalar(model.label)
    if found.column.type in types_of("binary") and (low, high) == (0, 1) and found.distinct == 2:
        note = "0 and 1" if found.column.type != "BOOLEAN" else "true is 1"
        return _Label(text=f"{{name: {name}, kind: binary}}", note=note, metric="auc", min_value=0.5)
    if found.column.type in types_of("multiclass") and low == 0 and high is not None and 1 < high < _MAX_CLASSES:
        classes = int(high) + 1
        text = f"{{name: {name}, kind: multiclass, classes: {classes}}}"
        return _Label(text=text, note=values, metric="accuracy", min_value=round(1 / classes, 4))
    if found.column.type in types_of("regression") and (found.distinct or 0) > 1:
        return _Label(text=f"{{name: {name}, kind: regression}}", note=values, metric="r2", min_value=0.0)
    raise DataError(
        f"LABEL of {model.source}",
        f"{model.label!r} ({found.column.type}) has {values}",
        "0 and 1, classes from 0 on, or numbers",
        model.way_out("has such a column (CAST(x > 15 AS INT64), a CASE)"),
    )


def _key_note(profile: TableProfile) -> str:
    missing = profile.rows - profile.key_values
    if not missing:
        return "one per row; decides part and shard, for life"
    return f"{missing} of {profile.rows} rows have none of their own: the checks want one per row. Choose another"


def _feature_lines(kinds: dict[str, str]) -> list[str]:
    """Return a line per feature; of too many, alike ones in one entry, and then several entries a line."""
    patterns = _patterns(kinds) if len(kinds) > _MAX_FEATURE_LINES else {}
    entries = dict.fromkeys(
        f"{{names: {json.dumps(patterns[name])}, kind: {kind}}}"
        if name in patterns
        else f"{{name: {_scalar(name)}, kind: {kind}}}"
        for name, kind in kinds.items()
    )
    items = list(entries)
    if len(items) <= _MAX_FEATURE_LINES:
        return [f"- {item}" for item in items]
    width = _WIDTH
    while len(lines := _wrapped(items, width)) > _MAX_FEATURE_LINES:
        width *= 2
    return [f"{'[' if not place else ' '}{line}" for place, line in enumerate(lines[:-1])] + [f" {lines[-1]}]"]


def _patterns(kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the pattern of each column that has alike ones: `mean_*`, `v*` of `v1`, `v2`, …, all of one kind."""
    found: dict[str, str] = {}
    for prefix in dict.fromkeys(match[0] for name in kinds if (match := _BEGINNING.match(name))):
        group = [name for name in kinds if name.startswith(prefix)]
        if (
            len(group) >= _ALIKE
            and len({kinds[name] for name in group}) == 1
            and not any(name in found for name in group)
        ):
            found |= dict.fromkeys(group, f"{prefix}*")
    return found


def _wrapped(items: Iterable[str], width: int) -> list[str]:
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) > width:
            lines.append("")
        lines[-1] += f"{item}, "
    return [line.rstrip() for line in lines[:-1]] + [lines[-1].removesuffix(", ")]


def _left_out_lines(left_out: list[str]) -> list[str]:
    """Return comments that name what is no feature, and why."""
    if not left_out:
        return []
    text = f"left out: {', '.join(left_out)}"
    return textwrap.wrap(text, _WIDTH, max_lines=_MAX_LEFT_OUT_LINES, placeholder=" …", break_on_hyphens=False)


def _scalar(name: str) -> str:
    """Return a column's name as YAML reads it as text."""
    return json.dumps(name) if name.lower() in _YAML_WORDS else name
