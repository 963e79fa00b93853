"""Patches texts that are written where a function takes a date or a time: the service reads them as values of its type.

| GoogleSQL | without it |
|---|---|
| TIMESTAMP_ADD('2020-01-02 03:04:05', INTERVAL 1 DAY) is a TIMESTAMP of that time | a DATETIME at midnight |
| TIMESTAMP_DIFF, TIMESTAMP_TRUNC, TIME_ADD, DATE_TRUNC, LAST_DAY, UNIX_SECONDS … of a text | refused |
| TIMESTAMP('2020-01-02 03:04'), without seconds, and of parts of a microsecond: refused | a time |

Source: literal coercion, cloud.google.com/bigquery/docs/reference/standard-sql/conversion_rules.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql import strict_casts

_TYPES: dict[type[exp.Expression], str] = {
    **dict.fromkeys((exp.TimestampAdd, exp.TimestampSub, exp.TimestampDiff, exp.TimestampTrunc), "TIMESTAMP"),
    **dict.fromkeys((exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros, exp.Datetime), "TIMESTAMP"),
    **dict.fromkeys((exp.DatetimeAdd, exp.DatetimeSub, exp.DatetimeDiff, exp.DatetimeTrunc), "DATETIME"),
    **dict.fromkeys((exp.TimeAdd, exp.TimeSub, exp.TimeDiff, exp.TimeTrunc), "TIME"),
    **dict.fromkeys((exp.DateAdd, exp.DateSub, exp.DateDiff, exp.DateTrunc, exp.LastDay, exp.UnixDate), "DATE"),
}
_DIFFERENCES = (exp.TimestampDiff, exp.DatetimeDiff, exp.TimeDiff, exp.DateDiff)
_MADE_OF_TEXT = (exp.Timestamp, exp.TsOrDsToDatetime, exp.TsOrDsToTime)


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in list(tree.find_all(*_TYPES)):
        for name in ("this", "expression") if isinstance(node, _DIFFERENCES) else ("this",):
            value = node.args[name]
            if isinstance(value, exp.Literal) and value.is_string:
                node.set(name, exp.cast(value.copy(), _TYPES[type(node)], dialect="bigquery"))
                found = True
    for node in list(tree.find_all(*_MADE_OF_TEXT)):
        found = strict_casts.require_time(node) or found
    return found
