r"""Patches casts that DuckDB makes of what BigQuery refuses, and one that it refuses.

| GoogleSQL | without it |
|---|---|
| CAST('t' AS BOOL), of '1', 'yes', 1.5: refused | true |
| CAST(TRUE AS FLOAT64), AS NUMERIC: refused | 1 |
| CAST('1e400' AS FLOAT64): refused | infinity |
| CAST('2020-01-02 03:04:05' AS DATE): refused | the day |
| CAST('abc' AS STRING(2)), which is refused by name | `abc` |
| '2020-01-02 03:04:05.1234567' as a TIMESTAMP, DATETIME or TIME: refused | without what is below a microsecond |
| '2020-01-02 03:04', without seconds, as one: refused | with 0 seconds |
| CAST(1e20 AS NUMERIC), of any FLOAT64: all its digits, rounded half away from zero | 99999999999999991433.1 |
| BIGNUMERIC '0.12345678901', which is refused by name | ten digits |
| PARSE_NUMERIC('- 1,234'), PARSE_NUMERIC('12.34-') | refused |
| TIMESTAMP '2020-01-01 00:00:00-8', a zone's hour of one digit | refused |

Source: the reference of conversion rules, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.bigquery.patches.sql.decimals import MORE_DIGITS, TOO_FINE
from localcloud.bigquery.types.typed import NO_TIME
from localcloud.refusals import refuse

_NUMBER = "[0-9,]*([.][0-9]*)?"
_SIGN_FIRST = rf"^\s*[+-]?\s*{_NUMBER}([eE][+-]?[0-9]+)?\s*$"
_SIGN_LAST = rf"^\s*{_NUMBER}\s*[+-]\s*$"
_WHOLE = "('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT')"
_DAY = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*$"
_TIMES = ("timestamptz", "timestamp", "datetime", "time")
_ZONE = re.compile(r"(?<=[0-9])([+-])([0-9])(?=$|:)")
_INFINITE = r"^\s*[-+]?inf(inity)?\s*$"
_BEYOND = f"isinf(CAST(x AS DOUBLE)) AND NOT regexp_matches(lower(CAST(x AS VARCHAR)), '{_INFINITE}')"
_SAFELY_BEYOND = _BEYOND.replace("CAST(x AS DOUBLE)", "TRY_CAST(x AS DOUBLE)")


# A FLOAT64 beside half of a last digit, 5e-10 or 5e-11, differs from it within thirty digits behind the point.
_ALL_DIGITS = "printf('%.60f', TRY_CAST(x AS DOUBLE))"


def _bad(what: str) -> str:
    """Return what ends a statement, of type BIGINT; NULL of NULL."""
    return f"CAST('Bad {what} value: ' || CAST(x AS VARCHAR) AS BIGINT)"


def _bool(otherwise: str) -> str:
    return (
        "CASE WHEN typeof(x) = 'VARCHAR' THEN CASE lower(CAST(x AS VARCHAR)) WHEN 'true' THEN TRUE"
        f" WHEN 'false' THEN FALSE ELSE {otherwise} END WHEN typeof(x) IN {_WHOLE} THEN TRY_CAST(x AS HUGEINT) <> 0"
        f" WHEN typeof(x) = 'BOOLEAN' THEN TRY_CAST(CAST(x AS VARCHAR) AS BOOLEAN) ELSE {otherwise} END"
    )


MACROS: Mapping[str, str] = {
    "localcloud_bool(x)": _bool(f"{_bad('bool')} <> 0"),
    "localcloud_safe_bool(x)": _bool("NULL"),
    "localcloud_plain_number(t)": (
        f"CASE WHEN regexp_matches(t, '{_SIGN_FIRST}') THEN regexp_replace(t, '[\\s,]', '', 'g')"
        f" WHEN regexp_matches(t, '{_SIGN_LAST}')"
        " THEN regexp_extract(t, '[+-]') || regexp_replace(t, '[\\s,+-]', '', 'g') ELSE t END"
    ),
    "localcloud_float64(x)": (
        f"CASE WHEN typeof(x) = 'BOOLEAN' THEN {_bad('double')}"
        f" WHEN typeof(x) = 'VARCHAR' AND ({_BEYOND}) THEN {_bad('double')} ELSE CAST(x AS DOUBLE) END"
    ),
    "localcloud_safe_float64(x)": (
        "CASE WHEN typeof(x) = 'BOOLEAN' THEN NULL"
        f" WHEN typeof(x) = 'VARCHAR' AND ({_SAFELY_BEYOND}) THEN NULL ELSE TRY_CAST(x AS DOUBLE) END"
    ),
    "localcloud_digits(x)": (
        f"CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN {_ALL_DIGITS}"
        f" WHEN typeof(x) = 'BOOLEAN' THEN CAST({_bad('numeric')} AS VARCHAR) ELSE CAST(x AS VARCHAR) END"
    ),
    "localcloud_safe_digits(x)": (
        f"CASE WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN {_ALL_DIGITS}"
        " WHEN typeof(x) = 'BOOLEAN' THEN NULL ELSE CAST(x AS VARCHAR) END"
    ),
    "localcloud_day(x)": (
        f"list_extract([x], CASE WHEN typeof(x) = 'VARCHAR' AND NOT regexp_matches(CAST(x AS VARCHAR), '{_DAY}')"
        f" THEN {_bad('date')} ELSE 1 END)"
    ),
    "localcloud_micros(x)": (
        f"list_extract([x], CASE WHEN typeof(x) = 'VARCHAR' AND regexp_matches(CAST(x AS VARCHAR), '{NO_TIME}')"
        f" THEN {_bad('time')} ELSE 1 END)"
    ),
    "localcloud_safe_micros(x)": (
        f"list_extract([x], CASE WHEN typeof(x) = 'VARCHAR' AND regexp_matches(CAST(x AS VARCHAR), '{NO_TIME}')"
        " THEN NULL ELSE 1 END)"
    ),
    "localcloud_safe_day(x)": (
        f"list_extract([x], CASE WHEN typeof(x) = 'VARCHAR' AND NOT regexp_matches(CAST(x AS VARCHAR), '{_DAY}')"
        " THEN NULL ELSE 1 END)"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in list(tree.find_all(exp.ParseNumeric)):
        node.set("this", call("localcloud_plain_number", node.this, type_=None))
        found = True
    for node in list(tree.find_all(exp.ParseBignumeric)):
        if _is_text(node.this) and re.search(MORE_DIGITS, node.this.this):
            refuse(f"{TOO_FINE.removeprefix('The local cloud has no ')}: {node.this.this}")
        plain = call("localcloud_plain_number", node.this, type_=None)
        node.set("this", call("localcloud_ten_digits", plain, type_=None))
        found = True
    for node in reversed(list(tree.find_all(exp.Cast))):
        if node.args.get("format") is None and not node.to.args.get("nested"):
            found = _patch(node) or found
    return found


def _with_parameters(node: exp.Cast) -> bool:
    """Patch a cast to a type with a length, which is refused, or with digits; tell whether it was."""
    value, kind = node.this, node.to.sql(dialect="bigquery")
    if node.to.is_type("text", "varchar", "binary"):
        refuse(f"{kind} in casts: a length is not looked at")
    if node.to.is_type("bigdecimal"):
        refuse(f"{kind} in casts: a number of digits is not looked at")
    if not node.to.is_type("decimal") or (isinstance(value, exp.Cast) and value.to.is_type("decimal")):
        return False
    # Rounded from all digits of NUMERIC, half away from zero: a FLOAT64 would be rounded by its binary digits.
    whole = type(node)(this=value.copy(), to=exp.DataType.build("NUMERIC", dialect="bigquery"))
    node.set("this", whole)
    _patch(whole)
    return True


def _patch(node: exp.Cast) -> bool:
    safe = "safe_" if isinstance(node, exp.TryCast) else ""
    value = node.this
    if node.to.expressions and _with_parameters(node):
        return True
    if isinstance(value, exp.Null) or (isinstance(value, exp.Literal) and value.is_int and not value.is_string):
        return False
    if node.to.is_type("boolean"):
        node.replace(call(f"localcloud_{safe}bool", value, type_="BOOL"))
    elif node.to.is_type("double", "float") and not _is_plain(value):
        node.replace(call(f"localcloud_{safe}float64", value, type_="FLOAT64"))
    elif node.to.is_type("decimal", "bigdecimal"):
        node.set("this", _digits(value, safe, is_big=bool(node.to.is_type("bigdecimal"))))
    elif node.to.is_type("timestamptz") and _has_short_zone(value):
        node.set("this", exp.Literal.string(_ZONE.sub(r"\g<1>0\g<2>", value.this)))
    elif node.to.is_type(*_TIMES):
        return require_time(node, safe)
    elif node.to.is_type("date") and not _is_day(value):
        node.set("this", call(f"localcloud_{safe}day", value, type_=None))
    else:
        return False
    return True


def require_time(node: exp.Expression, safe: str = "") -> bool:
    """Refuse a text that a node makes a time of, and that is none of the service's; tell whether it may be one."""
    if _is_short(node.this):
        return False
    node.set("this", call(f"localcloud_{safe}micros", node.this, type_=None))
    return True


def _digits(value: exp.Expression, safe: str, *, is_big: bool) -> exp.Expression:
    """Return the text of a number to be, with all its digits."""
    if isinstance(value, exp.Literal):
        text = value.this if value.is_string else format(Decimal(float(value.this)), "f")
        if is_big and re.search(MORE_DIGITS, text):
            refuse(f"{TOO_FINE.removeprefix('The local cloud has no ')}: {text}")
        return exp.Literal.string(text)
    digits = call(f"localcloud_{safe}digits", value, type_=None)
    return call("localcloud_ten_digits", digits, type_=None) if is_big else digits


def _is_text(value: exp.Expression) -> bool:
    return isinstance(value, exp.Literal) and value.is_string


def _is_plain(value: exp.Expression) -> bool:
    """Return whether a text is a number or NaN as everybody reads it."""
    return isinstance(value, exp.Literal) and len(value.this) < len("1e300") and "_" not in value.this


def _is_short(value: exp.Expression) -> bool:
    """Return whether a value is surely not a text with parts of a microsecond, or without seconds."""
    if isinstance(value, exp.Literal):
        return re.search(NO_TIME, value.this) is None
    return isinstance(value, exp.Cast | exp.CurrentTimestamp | exp.CurrentDatetime | exp.CurrentTime | exp.CurrentDate)


def _is_day(value: exp.Expression) -> bool:
    """Return whether a text is written without a time of the day."""
    return isinstance(value, exp.Literal) and not any(mark in value.this for mark in "T: ")


def _has_short_zone(value: exp.Expression) -> bool:
    """Return whether a text is a moment whose zone's hour has one digit."""
    is_text = isinstance(value, exp.Literal) and value.is_string
    return is_text and ":" in value.this and _ZONE.search(value.this) is not None
