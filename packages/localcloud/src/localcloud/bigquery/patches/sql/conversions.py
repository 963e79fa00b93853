r"""Patches conversions: numbers to integers, texts to BYTES, values to texts, which DuckDB writes in ways of its own.

| GoogleSQL | without it |
|---|---|
| CAST(2.5 AS INT64) | 2: half to even; BigQuery rounds half away from zero |
| CAST('1.5' AS INT64) | 2; BigQuery refuses it, and SAFE_CAST gives NULL |
| CAST(25.0 AS STRING), of NUMERIC, of times with parts of a second | `25.0`, nine digits, `.5` |
| CAST(1/3 AS STRING), of 1e15: 15 or 17 digits, `e` from the fifteenth on | 16 digits, whole |
| CAST(b'\xff' AS STRING), which is no UTF-8: refused | `\xFF` |
| CAST('é' AS BYTES), CAST('\\x41' AS BYTES): UTF-8 | refused, `A` |
| STRING(timestamp, zone) | without the zone's offset |
| CAST(interval AS STRING), which is refused by name | `5 days` |
| PARSE_TIMESTAMP(format, text, zone) | the zone was not looked at |

What a value is, DuckDB's `typeof` says when a statement is bound, so that nothing is asked row by row. Source: the
reference of conversion functions, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

_INTEGER = r"^\s*[+-]?([0-9]+|0[xX][0-9a-fA-F]+)\s*$"
_ZERO = "timezone('UTC', t)"
_MINUTES = f"date_diff('minute', {_ZERO}, timezone(zone, t))"


def _two_digits(number: str) -> str:
    """Return the text of a number below 100; DuckDB's own `lpad`, as that of `limits` is a side effect to it."""
    return f"system.main.lpad(CAST({number} AS VARCHAR), 2, '0')"


MACROS: Mapping[str, str] = {
    "localcloud_int64(x)": (
        "CASE"
        " WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN CAST(round(CAST(x AS DOUBLE)) AS BIGINT)"
        f" WHEN typeof(x) = 'VARCHAR' AND NOT regexp_matches(CAST(x AS VARCHAR), '{_INTEGER}')"
        " THEN CAST('Bad int64 value: ' || CAST(x AS VARCHAR) AS BIGINT)"
        " ELSE CAST(x AS BIGINT) END"
    ),
    "localcloud_safe_int64(x)": (
        "CASE"
        " WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN TRY_CAST(round(TRY_CAST(x AS DOUBLE)) AS BIGINT)"
        f" WHEN typeof(x) = 'VARCHAR' AND NOT regexp_matches(CAST(x AS VARCHAR), '{_INTEGER}') THEN NULL"
        " ELSE TRY_CAST(x AS BIGINT) END"
    ),
    # Parts of a second in threes, as few as say it.
    "localcloud_second_parts(t)": (
        r"CASE WHEN epoch_us(t) % 1000000 = 0 THEN ''"
        " WHEN epoch_us(t) % 1000 = 0 THEN strftime(t, '.%g') ELSE strftime(t, '.%f') END"
    ),
    "localcloud_timestamp_text(t, zone)": (
        " strftime(timezone(zone, t), '%Y-%m-%d %H:%M:%S') || localcloud_second_parts(timezone(zone, t))"
        f" || CASE WHEN {_MINUTES} < 0 THEN '-' ELSE '+' END || {_two_digits(f'abs({_MINUTES}) // 60')}"
        f" || CASE WHEN {_MINUTES} % 60 = 0 THEN '' ELSE ':' || {_two_digits(f'abs({_MINUTES}) % 60')} END"
    ),
    # Fifteen digits where they say it, otherwise seventeen, as `%g` has them.
    "localcloud_float_text(d)": (
        "CASE WHEN CAST(printf('%.15g', d) AS DOUBLE) = d THEN printf('%.15g', d) ELSE printf('%.17g', d) END"
    ),
    "localcloud_in_threes(s, whole)": (
        "CASE WHEN length(s) <= whole THEN s"
        " ELSE system.main.rpad(s, CASE WHEN length(s) <= whole + 4 THEN whole + 4 ELSE whole + 7 END, '0') END"
    ),
    "localcloud_text(x)": (
        "CASE"
        " WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN localcloud_float_text(TRY_CAST(x AS DOUBLE))"
        r" WHEN typeof(x) LIKE 'DECIMAL%' THEN"
        r" regexp_replace(regexp_replace(CAST(x AS VARCHAR), '(\.[0-9]*?)0+$', '\1'), '\.$', '')"
        " WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE'"
        " THEN localcloud_timestamp_text(TRY_CAST(CAST(x AS VARCHAR) AS TIMESTAMPTZ), 'UTC')"
        " WHEN typeof(x) = 'TIMESTAMP' THEN localcloud_in_threes(CAST(x AS VARCHAR), 19)"
        " WHEN typeof(x) = 'TIME' THEN localcloud_in_threes(CAST(x AS VARCHAR), 8)"
        " WHEN typeof(x) = 'BLOB' THEN decode(CAST(x AS BLOB))"
        " WHEN typeof(x) = 'INTERVAL'"
        " THEN CAST(CAST('The local cloud has no texts of intervals: ' || CAST(x AS VARCHAR) AS BIGINT) AS VARCHAR)"
        " ELSE CAST(x AS VARCHAR) END"
    ),
    "localcloud_bytes(x)": (
        "CASE WHEN typeof(x) = 'VARCHAR' THEN encode(CAST(x AS VARCHAR)) WHEN typeof(x) = 'BLOB' THEN"
        " TRY_CAST(x AS BLOB)"
        " ELSE encode(CAST(CAST('Bad bytes value: ' || CAST(x AS VARCHAR) AS BIGINT) AS VARCHAR)) END"
    ),
    "localcloud_safe_text(x)": (
        "CASE WHEN typeof(x) = 'BLOB' THEN TRY(decode(CAST(x AS BLOB))) ELSE localcloud_text(x) END"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in reversed(list(tree.find_all(exp.Cast, exp.TryCast, exp.String, exp.StrToTime))):
        new = _converted(node)
        if new is not None:
            node.replace(new)
            found = True
    return found


def _converted(node: exp.Expression) -> exp.Expression | None:
    match node:
        case exp.Cast() if (
            node.args.get("format") is None and not node.to.expressions and not node.to.args.get("nested")
        ):
            safe = isinstance(node, exp.TryCast)
            if node.to.is_type("bigint") and not _is_plain(node.this):
                return call("localcloud_safe_int64" if safe else "localcloud_int64", node.this)
            if node.to.is_type("text") and not _is_plain(node.this):
                return call("localcloud_safe_text" if safe else "localcloud_text", node.this, type_="STRING")
            if node.to.is_type("binary"):
                return call("localcloud_bytes", node.this, type_="BYTES")
        case exp.String() if node.args.get("zone") is not None:
            return call("localcloud_timestamp_text", node.this, node.args["zone"], type_="STRING")
        case exp.StrToTime() if node.args.get("zone") is not None and "%z" not in node.args["format"].sql():
            parsed = exp.ParseDatetime(this=node.this.copy(), format=node.args["format"].copy())
            return exp.Anonymous(this="TIMESTAMP", expressions=[parsed, node.args["zone"].copy()])
    return None


def _is_plain(value: exp.Expression) -> bool:
    """Return whether a value is a whole number or NULL, for which DuckDB is right."""
    return isinstance(value, exp.Null) or (isinstance(value, exp.Literal) and not value.is_string and value.is_int)
