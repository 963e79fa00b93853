"""Patches parts of dates and times: DuckDB counts boundaries for whole units, and starts weeks on Mondays.

| GoogleSQL | without it |
|---|---|
| TIMESTAMP_DIFF | 01:00:00 minus 00:59:59 was an hour |
| DATE_DIFF, DATETIME_DIFF by WEEK, WEEK(day), ISOWEEK | by ISO weeks, or refused |
| DATE_TRUNC, DATETIME_TRUNC, TIMESTAMP_TRUNC to WEEK(day), ISOWEEK | the day itself, or refused |
| DATETIME_TRUNC and TIMESTAMP_TRUNC to WEEK, DATE_TRUNC of a column to it: Sundays | Mondays |
| DATE_TRUNC of a column of type DATE is a DATE, of a TIMESTAMP by WEEK(day) a TIMESTAMP | a DATETIME; a DATE |
| LAST_DAY of WEEK, WEEK(day), ISOWEEK, ISOYEAR | the month's last, or refused |
| GENERATE_DATE_ARRAY by months from behind the 28th, which is refused by name | each month's day is the last one's |
| EXTRACT(WEEK), EXTRACT(WEEK(day)) | the ISO week, or refused |
| EXTRACT(MILLISECOND), EXTRACT(MICROSECOND) | counted from the minute |
| EXTRACT(TIME), CURRENT_DATETIME, TIME and CAST AS TIME of a TIMESTAMP | refused |
| GENERATE_TIMESTAMP_ARRAY | datetimes |
| DATE_BUCKET, DATETIME_BUCKET, TIMESTAMP_BUCKET | no such function |
| MAKE_INTERVAL of columns, or of nothing | refused |
| UNIX_SECONDS, UNIX_MILLIS | rounded, not cut off |

Source: the reference of date, datetime and timestamp functions, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

MACROS: Mapping[str, str] = {
    "localcloud_whole_units(part, later, earlier)": ("date_sub(part, earlier, later)"),
    # The number of the week since 1970-01-04, a Sunday; `first` is the first day of weeks, 0 being Sunday.
    "localcloud_week(d, first)": (
        "CAST(floor((date_diff('day', DATE '1970-01-04', CAST(d AS DATE)) - first) / 7.0) AS BIGINT)"
    ),
    "localcloud_week_day(d, first, later)": (
        "DATE '1970-01-04' + CAST(localcloud_week(d, first) * 7 + first + later AS INTEGER)"
    ),
    # Days before the year's first such day are in week 0.
    "localcloud_week_of_year(d, first)": (
        "CAST(floor((dayofyear(d) + 6 - ((dayofweek(d) - first + 7) % 7)) / 7.0) AS BIGINT)"
    ),
    # An ISO year begins with the week of January 4.
    "localcloud_iso_year_end(d)": (
        "CAST(date_trunc('week', make_date(isoyear(CAST(d AS DATE)) + 1, 1, 4)) AS DATE) - 1"
    ),
    "localcloud_early_day(d)": (
        "CASE WHEN day(CAST(d AS DATE)) > 28 THEN CAST(CAST('The local cloud has no GENERATE_DATE_ARRAY by months that'"
        " || ' begins behind the 28th: ' || CAST(d AS VARCHAR) AS BIGINT) AS VARCHAR)::DATE ELSE CAST(d AS DATE) END"
    ),
    "localcloud_bucket(t, width, origin)": "time_bucket(width, t, origin)",
    "localcloud_time(x)": (
        "CASE WHEN typeof(x) = 'VARCHAR' THEN CAST(CAST(x AS VARCHAR) AS TIME) ELSE CAST(CAST(x AS TIMETZ) AS TIME) END"
    ),
    "localcloud_unix(t, unit)": ("CAST((epoch_us(t) - ((epoch_us(t) % unit) + unit) % unit) // unit AS BIGINT)"),
}
_DAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_MONTHS = frozenset({"MONTH", "QUARTER", "YEAR"})
_BELOW_SECOND = {"MILLISECOND": 1000, "MICROSECOND": 1_000_000}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in reversed(list(tree.find_all(*_BY_KIND))):  # inner ones first
        make = _BY_KIND.get(type(node))  # SAFE_CAST is a kind of CAST, and has none
        if make is not None and (new := make(node)) is not None:
            node.replace(new)
            found = True
    return found


def _first_day(unit: exp.Expression | None, *, plain: bool) -> int | None:
    """Return the first day of a part's weeks; None: it is of no weeks, or of plain ones, which need nothing."""
    if isinstance(unit, exp.WeekStart):
        return _DAYS.index(unit.this.name.upper())
    name = unit.name.upper() if unit is not None else ""
    return 1 if name == "ISOWEEK" else 0 if plain and name == "WEEK" else None


def _whole_units(node: exp.Expression) -> exp.Expression | None:
    return call("localcloud_whole_units", node.args["unit"].name.lower(), node.this, node.expression)


def _weeks_between(node: exp.Expression) -> exp.Expression | None:
    first = _first_day(node.args.get("unit"), plain=True)
    if first is None:
        return None
    later, earlier = (call("localcloud_week", each, first) for each in (node.this, node.expression))
    return exp.Paren(this=exp.Sub(this=later, expression=earlier))


def _start_of_week(node: exp.Expression) -> exp.Expression | None:
    first = _first_day(node.args["unit"], plain=True)
    if first is None:
        return None
    zone = node.args.get("zone")
    if isinstance(node, exp.DatetimeTrunc):
        return exp.cast(call("localcloud_week_day", node.this, first, 0, type_="DATE"), "DATETIME", dialect="bigquery")
    local = exp.Anonymous(this="DATE", expressions=[node.this.copy(), *([zone.copy()] if zone else [])])
    start = call("localcloud_week_day", local, first, 0, type_="DATE")
    return exp.Anonymous(this="TIMESTAMP", expressions=[start, *([zone.copy()] if zone else [])])


def _start_of_part(node: exp.Expression) -> exp.Expression | None:
    """Return DATE_TRUNC of the type that it is of, which may be DATE, DATETIME or TIMESTAMP."""
    if isinstance(node.this, exp.Null) or node.find_ancestor(exp.PartitionedByProperty):
        return None
    first = _first_day(node.args["unit"], plain=True)
    start = node.copy() if first is None else call("localcloud_week_day", node.this, first, 0, type_="DATE")
    return exp.Anonymous(this="cast_to_type", expressions=[start, node.this.copy()])


def _end_of_week(node: exp.Expression) -> exp.Expression | None:
    unit = node.args.get("unit")
    if unit is not None and unit.name.upper() == "ISOYEAR":
        return call("localcloud_iso_year_end", node.this, type_="DATE")
    first = _first_day(unit, plain=True)
    return None if first is None else call("localcloud_week_day", node.this, first, 6, type_="DATE")


def _days_by_months(node: exp.Expression) -> exp.Expression | None:
    """Let the days of an array not depend on whether a month is added to the first day or to the one before."""
    step = node.args.get("step")
    unit = step.args.get("unit") if isinstance(step, exp.Interval) else None
    if unit is None or unit.name.upper() not in _MONTHS:
        return None
    new = node.copy()
    new.set("start", call("localcloud_early_day", node.args["start"], type_="DATE"))
    return new


def _part(node: exp.Expression) -> exp.Expression | None:
    part = node.this
    if isinstance(part, exp.WeekStart) or part.name.upper() == "WEEK":
        return call("localcloud_week_of_year", node.expression, _first_day(part, plain=True) or 0)
    if part.name.upper() in _BELOW_SECOND:
        return exp.Mod(this=node.copy(), expression=exp.Literal.number(_BELOW_SECOND[part.name.upper()]))
    if part.name.upper() == "TIME":
        return _time(node.expression)
    return None


def _time(value: exp.Expression) -> exp.Expression:
    return call("localcloud_time", value, type_="TIME")


def _cast(node: exp.Expression) -> exp.Expression | None:
    is_made = isinstance(node.this, exp.Anonymous) and node.this.name.startswith("localcloud_time")
    if is_made or isinstance(node.this, exp.Literal) or not node.to.is_type("time"):
        return None
    return _time(node.this)


def _time_of(node: exp.Expression) -> exp.Expression | None:
    """`TIME(x)`; sqlglot writes the same around what FORMAT_TIME is given."""
    is_given = isinstance(node.parent, exp.TimeToStr) or isinstance(node.this, exp.Literal)
    return None if is_given else _time(node.this)


def _instants(node: exp.Expression) -> exp.Expression | None:
    return exp.cast(node.copy(), "ARRAY<TIMESTAMP>", dialect="bigquery")


def _unix(unit: int) -> Callable[[exp.Expression], exp.Expression | None]:
    return lambda node: call("localcloud_unix", node.this, unit)


def _now(node: exp.Expression) -> exp.Expression | None:
    zone = node.this.copy() if node.this is not None else exp.Literal.string("UTC")
    return exp.Datetime(this=exp.CurrentTimestamp(), expression=zone)


def _interval(node: exp.Expression) -> exp.Expression | None:
    parts = [(name, value) for name in _PARTS if (value := node.args.get(name)) is not None]
    found: exp.Expression | None = None
    for name, value in parts or [("second", exp.Literal.number(0))]:
        number = value.expression if isinstance(value, exp.Kwarg) else value
        part = exp.Interval(this=exp.paren(number.copy()), unit=exp.var(name.upper()))
        found = part if found is None else exp.Add(this=found, expression=part)
    return exp.paren(found)


def _bucket(node: exp.Expression) -> exp.Expression | None:
    kind = node.name.upper().removesuffix("_BUCKET")
    if not node.name.upper().endswith("_BUCKET") or kind not in {"DATE", "DATETIME", "TIMESTAMP"}:
        return None
    moment, width, *origin = node.expressions
    first = origin[0] if origin else exp.Literal.string("1950-01-01")
    if isinstance(first, exp.Literal):
        first = exp.cast(first, kind, dialect="bigquery")
    return call("localcloud_bucket", moment, width, first, type_=kind)


_BY_KIND: Mapping[type[exp.Expression], Callable[[exp.Expression], exp.Expression | None]] = {
    exp.GenerateDateArray: _days_by_months,
    exp.TimestampDiff: _whole_units,
    exp.DateDiff: _weeks_between,
    exp.DatetimeDiff: _weeks_between,
    exp.DateTrunc: _start_of_part,
    exp.DatetimeTrunc: _start_of_week,
    exp.TimestampTrunc: _start_of_week,
    exp.LastDay: _end_of_week,
    exp.CurrentDatetime: _now,
    exp.Extract: _part,
    exp.GenerateTimestampArray: _instants,
    exp.MakeInterval: _interval,
    exp.Anonymous: _bucket,
    exp.UnixSeconds: _unix(1_000_000),
    exp.UnixMillis: _unix(1000),
    exp.Cast: _cast,
    exp.TsOrDsToTime: _time_of,
}
