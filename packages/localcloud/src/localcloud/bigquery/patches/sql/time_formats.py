"""Patches formats of times, whose elements DuckDB has otherwise or not.

| FORMAT_TIMESTAMP and the like | without it |
|---|---|
| `%E3S`, `%E*S`, `%E4Y` | refused, refused, itself |
| `%e`, a day of the month after a blank, also in `%c` | without a blank |
| `%k`, `%l`, `%P`, `%Q`, `%C`, `%R` | refused |
| `%z`: `+0000` | `+00` |
| `%n`, `%t`: a new line, a tab | nanoseconds, nothing |
| `%Z` of a TIMESTAMP without a zone: `UTC` | nothing |

What is written after the fact stands between two marks, and is found by them. `%g`, `%s`, `%J`, other parts of a
second, and formats that are not written in the statement are refused by name; so are parts of a day of a DATE, and
what PARSE_TIMESTAMP and the like cannot read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.refusals import refuse

_MARK, _BLANK, _OFFSET, _QUARTER, _CENTURY, _SMALL = map(chr, range(0xE000, 0xE006))  # of no text that anybody writes
_ELEMENT = re.compile(r"%(E[*0-9]S|E4Y|Ez|-d|.)", re.DOTALL)
_WRITTEN = {
    "%E3S": "%S.%g",
    "%E*S": f"%S{_MARK}.%f{_MARK}",
    "%E4Y": "%Y",
    "%-d": f"{_BLANK}%d",
    "%e": f"{_BLANK}%d",
    "%k": f"{_BLANK}%H",
    "%l": f"{_BLANK}%I",
    "%P": f"{_SMALL}%p",
    "%Q": f"{_QUARTER}%m{_QUARTER}",
    "%C": f"{_CENTURY}%Y{_CENTURY}",
    "%z": f"{_OFFSET}%z{_OFFSET}",
    "%R": "%H:%M",
    "%n": "\n",
    "%t": "\t",
}
"""Elements as DuckDB writes them, which then are looked for by their marks."""
_ALIKE = frozenset({*map("%".__add__, "AaBbcdDFfGHhIjMmpSTUuVWwXxYyZ%"), "%E6S", "%Ez"})
"""Elements that are right without this."""
_OF_TIMES = re.compile(r"(?<!%)(?:%%)*(%(?:[HIklMpPRSTXzZ]|E[*0-9]S|Ez))")
_UNREAD = re.compile(r"%[CJPQRgkls]")
"""Elements that BigQuery reads and DuckDB does not."""
_READS = (exp.StrToTime, exp.StrToDate, exp.ParseDatetime, exp.ParseTime)


def _between(mark: str, replaced: str, text: str, by: str) -> str:
    return f"regexp_replace({text}, '{mark}{replaced}{mark}', '{by}', 'g')"


_QUARTERS = "localcloud_blanks(s)"
for _number, _months in enumerate(("(01|02|03)", "(04|05|06)", "(07|08|09)", "(10|11|12)"), start=1):
    _QUARTERS = _between(_QUARTER, _months, _QUARTERS, str(_number))
MACROS: Mapping[str, str] = {
    "localcloud_blanks(s)": (
        f"replace(replace(replace(replace(s, '{_BLANK}0', ' '), '{_BLANK}', ''),"
        f" '{_SMALL}AM', 'am'), '{_SMALL}PM', 'pm')"
    ),
    "localcloud_quarters(s)": _between(_CENTURY, "([0-9]{2})[0-9]{2}", _QUARTERS, "\\1"),
    "localcloud_offsets(s)": _between(
        _OFFSET,
        "([+-][0-9]{2}):?([0-9]{2})",
        _between(_OFFSET, "([+-][0-9]{2})", "localcloud_quarters(s)", f"{_OFFSET}\\100{_OFFSET}"),
        "\\1\\2",
    ),
    "localcloud_cut_parts(s)": (
        f"regexp_replace(regexp_replace(localcloud_offsets(s), '{_MARK}\\.0+{_MARK}', '', 'g'),"
        f" '{_MARK}(\\.[0-9]*?)0*{_MARK}', '\\1', 'g')"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in tree.find_all(*_READS):
        elements = node.args.get("format")
        if isinstance(elements, exp.Literal) and (unread := _UNREAD.search(elements.this)):
            refuse(f"{unread.group()} in formats of times that are read")
    for node in reversed(list(tree.find_all(exp.TimeToStr))):
        elements = node.args["format"]
        if not isinstance(elements, exp.Literal):
            refuse("formats of times that are not written in the statement")
        is_utc = isinstance(node.this, exp.TsOrDsToTimestamp) and node.args.get("zone") is None
        if isinstance(node.this, exp.TsOrDsToDate) and (timely := _OF_TIMES.search(elements.this)):
            refuse(f"{timely.group(1)} in formats of dates, which have no time of the day")
        text = _ELEMENT.sub(functools.partial(_written, is_utc=is_utc), elements.this)
        if text == elements.this:
            continue
        node.set("format", exp.Literal.string(text))
        if any(mark in text for mark in (_MARK, _BLANK, _OFFSET, _QUARTER, _CENTURY, _SMALL)):
            node.replace(call("localcloud_cut_parts", node, type_="STRING"))
        found = True
    return found


def _written(match: re.Match[str], *, is_utc: bool) -> str:
    element = match.group()
    if element == "%Z" and is_utc:
        return "UTC"
    if element not in _WRITTEN and element not in _ALIKE:
        refuse(f"{element} in formats of times")
    return _WRITTEN.get(element, element)
