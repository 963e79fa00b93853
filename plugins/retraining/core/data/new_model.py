"""A first YAML and SQL file of a model, from what its table holds: valid, short, every guess marked as one.

In: what the user says, and the table's profile. Out: two texts, and what to ask next.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from retraining.core.data.first_features import guess_feature, plain_kind
from retraining.core.data.first_spec import FirstLabel, guess_label, guess_window
from retraining.core.data.sql import render
from retraining.core.data.table_profile import NewModel, TableProfile, reason_left_out
from retraining.core.documents.evaluation import LEAST_ROWS
from retraining.core.errors import DataError
from retraining.core.metrics import METRICS, metrics_of
from retraining.core.program import command_line
from retraining.core.spec.section import column_name_for

MAX_LINES = 32
_MAX_FEATURE_LINES = 8
_MAX_LEFT_OUT_LINES = 2
_WIDTH = 116
_LEAST_TEST_PERCENT, _MOST_TEST_PERCENT = 10, 30
_TESTED_UNITS = 2 * LEAST_ROWS
"""Of what the metric needs in the test rows: twice what it is judged from on, as a hash gives now more, now fewer."""
_ALIKE = 4
"""Columns of one beginning that are worth a pattern."""
_BEGINNING = re.compile(r"[A-Za-z0-9]+_|[A-Za-z]+(?=[0-9]+$)")
_YAML_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_MADE_KEY = "example_key"


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """The texts of `include/models/<name>.yaml` and `include/sql/<name>/examples.sql`.

    `preview` is the command that looks at the model's data, of a table that ended with the time to ask for.
    """

    yaml: str
    sql: str
    preview: str


@dataclass(frozen=True, kw_only=True)
class _Size:
    """Rows of the window, or of the table, and of them those that are tested."""

    rows: int
    tested: float


def write_model(model: NewModel, profile: TableProfile, today: date) -> ModelFiles:
    """Return the files of a model that `make check-models` takes.

    Args:
        model: What its user says.
        profile: Of its table.
        today: A table whose newest rows are far before it has ended.

    Raises:
        DataError: The label is none that can be learnt, the times are of one day, or no column is left to be a feature.
    """
    names = _names(model, profile)
    label = guess_label(model, profile, _scalar(names[model.label]))
    kinds, left_out = _features(model, profile)
    test_percent = _guess_test_percent(profile, label)
    window = guess_window(model, profile, today) if model.time else None
    size = (
        _Size(rows=window.rows, tested=window.test_rows)
        if window
        else _Size(rows=profile.rows, tested=profile.rows * test_percent / 100)
    )
    key = names[model.keys[0]] if model.key_kind == "column" else names[_MADE_KEY]
    as_of = {"AS_OF": f"{window.as_of:%Y-%m-%dT%H:%M:%SZ}"} if window and window.ended else {}
    preview = command_line("preview", model.name, **as_of)
    yaml = render(
        "new_model.yaml.j2",
        model=model,
        profile=profile,
        key=_scalar(key),
        time=_scalar(names[model.time]) if model.time else "",
        key_note=_key_note(model, profile),
        window=window,
        check=command_line("check-models"),
        preview=preview,
        min_rows=max(1, size.rows // 2),
        test_percent=test_percent,
        min_examples=max(1, min(1000, int(size.tested / 2))),
        features=_feature_lines({names[name]: kind for name, kind in kinds.items()}),
        left_out=_left_out_lines(left_out),
        label=label,
    )
    return ModelFiles(yaml=yaml, sql=_sql(model, profile, names, kinds, label.mapped), preview=preview)


def _guess_test_percent(profile: TableProfile, label: FirstLabel) -> int:
    """Return so many that the test rows have what the metric is judged by: rows of each class, of a number rows."""
    counts = [found.rows for found in profile.classes]
    units = profile.rows
    if counts and label.metric not in metrics_of("regression"):
        units = min(counts) if METRICS[label.metric].of_each_class else sum(counts) - max(counts)
    wanted = math.ceil(100 * _TESTED_UNITS / max(units, 1))
    return min(max(wanted, _LEAST_TEST_PERCENT), _MOST_TEST_PERCENT)


def _sql(
    model: NewModel, profile: TableProfile, names: Mapping[str, str], kinds: Iterable[str], mapped: Iterable[object]
) -> str:
    of_type = profile.of_column(model.time).column.type if model.time else "TIMESTAMP"
    plain = [*([model.keys[0]] if model.key_kind == "column" else []), *([model.time] if model.time else []), *kinds]
    return render(
        "new_model.sql.j2",
        model=model,
        key=names[_MADE_KEY],
        columns=[{"name": name, "as": names[name]} for name in plain],
        label={"name": model.label, "as": names[model.label]},
        mapped=list(mapped),
        convert="" if of_type == "TIMESTAMP" else of_type,
    )


def _names(model: NewModel, profile: TableProfile) -> dict[str, str]:
    """Return each column's name in the examples, and that of the key where the query makes one.

    A name that a spec cannot have gets another one; none stands twice, whatever its case.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    listed = [found.column.name for found in profile.columns]
    for name in sorted(listed, key=lambda name: column_name_for(name) != name):  # those that keep theirs come first
        names[name] = _free(column_name_for(name), taken)
    names[_MADE_KEY] = names[_MADE_KEY] if model.keys == (_MADE_KEY,) else _free(_MADE_KEY, taken)
    return names


def _free(name: str, taken: set[str]) -> str:
    count, free = 1, name
    while free.lower() in taken:
        count += 1
        free = f"{name}_{count}"
    taken.add(free.lower())
    return free


def _features(model: NewModel, profile: TableProfile) -> tuple[dict[str, str], list[str]]:
    """Return the kind of each column that is a feature, with its options, and what is none, with the reason."""
    kinds: dict[str, str] = {}
    left_out = []
    roles = {model.time, model.label, *(model.keys if model.key_kind == "column" else ())}
    for found in profile.columns:
        name = found.column.name
        if name in roles:
            continue
        if reason := reason_left_out(found, profile.rows):
            left_out.append(f"{name} ({reason})")
        else:
            kinds[name] = guess_feature(found)
    if not kinds:
        reasons = f"no feature: {', '.join(left_out) or 'no other column'}"
        raise DataError(model.source, reasons, "numbers or categories", model.way_out("has some"))
    return kinds, left_out


def _key_note(model: NewModel, profile: TableProfile) -> str:
    missing = profile.rows - profile.key_values
    if model.key_kind == "row":
        equal = f"; {missing} rows repeat another" if missing else ""
        return f"guess: a hash of the row, see the SQL{equal}. Better: KEY=, a column or several, for life"
    if not missing:
        return "one per row; decides part and shard, for life"
    return f"{missing} of {profile.rows} rows have none of their own: the checks want one per row. Choose another"


def _feature_lines(kinds: dict[str, str]) -> list[str]:
    """Return a line per feature; of too many, alike ones in one entry, and then several entries a line."""
    if len(kinds) > _MAX_FEATURE_LINES:
        kinds = _alike(kinds)
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


def _alike(kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the kinds without the options of columns that could stand in one entry but for them."""
    plain = {name: plain_kind(kind) for name, kind in kinds.items()}
    of_group = _patterns(plain)
    mixed = {
        pattern
        for pattern in of_group.values()
        if len({kinds[name] for name, own in of_group.items() if own == pattern}) > 1
    }
    return {name: plain[name] if of_group.get(name) in mixed else kind for name, kind in kinds.items()}


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
