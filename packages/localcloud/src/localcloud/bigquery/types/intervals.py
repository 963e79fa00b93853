"""INTERVAL as text: BigQuery's own form and that of ISO 8601, both of which files of load jobs may have.

`[-]Y-M [-]D [-]H:M:S[.F]` and `P[nY][nM][nD][T[nH][nM][nS]]`, each number of the latter with a sign of its own:
https://cloud.google.com/bigquery/docs/reference/standard-sql/data-types#interval_type.
"""

from __future__ import annotations

_OWN = r"([-+]?)(\d+)-(\d+) ([-+]?\d+) ([-+]?)(\d+):(\d+):(\d+(?:\.\d+)?)"
_NUMBER = r"([-+]?\d+)"
_ISO = (
    rf"P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}D)?"
    rf"(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:([-+]?\d+(?:\.\d+)?)S)?)?"
)
_MICROSECONDS = "DECIMAL(38, 6)"


def interval_expression(sql: str) -> str:
    """Return the DuckDB expression for the INTERVAL that a text is; another text is an error."""

    def part(pattern: str, group: int, kind: str = "BIGINT") -> str:
        found = f"regexp_extract({sql}, '^{pattern}$', {group})"
        return f"coalesce(TRY_CAST(nullif({found}, '') AS {kind}), 0)"

    def sign(group: int) -> str:
        return f"CASE regexp_extract({sql}, '^{_OWN}$', {group}) WHEN '-' THEN -1 ELSE 1 END"

    def packed(months: str, days: str, seconds: str) -> str:
        microseconds = f"CAST(({seconds}) * 1000000 AS BIGINT)"
        return (
            f"to_months(CAST({months} AS INTEGER)) + to_days(CAST({days} AS INTEGER)) + to_microseconds({microseconds})"
        )

    own = packed(
        f"({sign(1)}) * ({part(_OWN, 2)} * 12 + {part(_OWN, 3)})",
        part(_OWN, 4),
        f"({sign(5)}) * ({part(_OWN, 6)} * 3600 + {part(_OWN, 7)} * 60 + {part(_OWN, 8, _MICROSECONDS)})",
    )
    iso = packed(
        f"({part(_ISO, 1)} * 12 + {part(_ISO, 2)})",
        part(_ISO, 3),
        f"({part(_ISO, 4)} * 3600 + {part(_ISO, 5)} * 60 + {part(_ISO, 6, _MICROSECONDS)})",
    )
    wrong = f"CAST(error('Invalid INTERVAL value: ' || {sql}) AS INTERVAL)"
    return (
        f"CASE WHEN {sql} IS NULL THEN NULL WHEN regexp_full_match({sql}, '{_OWN}') THEN {own}"
        f" WHEN regexp_full_match({sql}, '{_ISO}') AND regexp_matches({sql}, '[YMDHS]$') THEN {iso} ELSE {wrong} END"
    )
