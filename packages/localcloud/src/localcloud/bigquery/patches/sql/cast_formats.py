"""Patches `CAST(… FORMAT …)` of BYTES, and of dates and times to STRING, which is refused; others are so by name.

| GoogleSQL | what stands for it |
|---|---|
| `CAST(s AS BYTES FORMAT 'HEX')`, 'BASE64' | `FROM_HEX(s)`, `FROM_BASE64(s)` |
| `CAST(b AS STRING FORMAT 'BASE64')` | `TO_BASE64(b)` |
| `CAST(d AS STRING FORMAT 'YYYY-MM-DD')`, `'Day'` | `FORMAT_DATETIME`, by the cases of the elements |

`CAST(b AS STRING FORMAT 'HEX')` is refused: `TO_HEX` takes numbers, too, which BigQuery would not cast so.
Source: the reference of format elements, cloud.google.com/bigquery/docs/reference/standard-sql/format-elements.
"""

from __future__ import annotations

import re

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.refusals import refuse

_NUMBERS = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M",
    "SS": "%S",
}  # fmt: skip
_WORDS = {"MONTH": "%B", "MON": "%b", "DAY": "%A", "DY": "%a", "AM": "%p", "PM": "%p"}
_ELEMENT = re.compile(
    rf"({'|'.join(sorted({**_NUMBERS, **_WORDS}, key=len, reverse=True))})|([-./,';: ]+)|\"((?:[^\"\\]|\\.)*)\"",
    re.IGNORECASE,
)
_READ = {"HEX": exp.Unhex, "BASE64": exp.FromBase64}
_WRITE = {"BASE64": exp.ToBase64}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for cast in reversed(list(tree.find_all(exp.Cast))):  # that of SAFE_CAST is one, too
        elements = cast.args.get("format")
        if elements is None:
            continue
        functions = _READ if cast.to.is_type("binary", "varbinary") else _WRITE if cast.to.is_type("text") else {}
        name = elements.this.upper() if isinstance(elements, exp.Literal) and elements.is_string else ""
        formatted = _formatted(cast.this, elements.this) if name and cast.to.is_type("text") else None
        if formatted is not None and not isinstance(cast, exp.TryCast):
            cast.replace(formatted)
            found = True
            continue
        if name not in functions or isinstance(cast, exp.TryCast):
            refuse(f"CAST to {cast.to.sql(dialect='bigquery')} with FORMAT {elements.sql(dialect='bigquery')}")
        cast.replace(functions[name](this=cast.this.copy()))
        found = True
    return found


def _formatted(value: exp.Expression, elements: str) -> exp.Expression | None:
    """Return the text of a date or time by format elements; None where one is not offered."""
    found = list(_ELEMENT.finditer(elements))
    if "".join(match.group() for match in found) != elements or not any(match[1] for match in found):
        return None
    moment = exp.cast(value.copy(), "DATETIME", dialect="bigquery")
    pieces: list[exp.Expression] = []
    for element, between, quoted in (match.groups() for match in found):
        if element is None:
            pieces.append(exp.Literal.string(between if between is not None else re.sub(r"\\(.)", r"\1", quoted)))
            continue
        name = element.upper()
        code = exp.Literal.string({**_NUMBERS, **_WORDS}[name])
        text: exp.Expression = exp.TimeToStr(this=exp.TsOrDsToDatetime(this=moment.copy()), format=code)
        if name in _WORDS:
            text = (exp.Lower if element[0].islower() else exp.Upper if element[1].isupper() else exp.Initcap)(
                this=text
            )
        pieces.append(text)
    return pieces[0] if len(pieces) == 1 else exp.Concat(expressions=pieces)
