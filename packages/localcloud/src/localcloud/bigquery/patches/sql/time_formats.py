"""Patches formats of times: parts of a second, which DuckDB writes by other elements, and `%g`.

`%E3S` becomes `%S.%g`, as DuckDB's `%g` is the millisecond; in GoogleSQL it is the ISO year without its century,
which is refused by name. `%E*S` has as many digits as say it: they are written between two marks, and cut there.
`%e`, a day of the month after a blank, arrives as `%-d`, which is without one. `%n` and `%t` are a new line and a tab,
to DuckDB nanoseconds and nothing; `%Z` of a TIMESTAMP without a zone is `UTC`, to DuckDB nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.refusals import refuse

_MARK = "\ue000"  # of no text that anybody writes
_DAY = "\ue001"
_ELEMENT = re.compile(r"(%[%ntZ])")
MACROS: Mapping[str, str] = {
    "localcloud_days(s)": f"replace(replace(s, '{_DAY}0', ' '), '{_DAY}', '')",
    "localcloud_cut_parts(s)": (
        f"regexp_replace(regexp_replace(localcloud_days(s), '{_MARK}\\.0+{_MARK}', '', 'g'),"
        f" '{_MARK}(\\.[0-9]*?)0*{_MARK}', '\\1', 'g')"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in reversed(list(tree.find_all(exp.TimeToStr))):
        elements = node.args["format"]
        if not isinstance(elements, exp.Literal):
            continue
        if unknown := re.search(r"%(g|E[124579]S)", elements.this):
            refuse(f"{unknown.group()} in formats of times")
        elif re.search(r"%(E3S|E\*S|-d|n|t|Z)", elements.this):
            text = (
                elements.this.replace("%E3S", "%S.%g")
                .replace("%E*S", f"%S{_MARK}.%f{_MARK}")
                .replace("%-d", f"{_DAY}%d")
            )
            is_utc = isinstance(node.this, exp.TsOrDsToTimestamp) and node.args.get("zone") is None
            written = {"%n": "\n", "%t": "\t", "%Z": "UTC" if is_utc else "%Z"}
            text = "".join(written.get(each, each) for each in _ELEMENT.split(text))
            node.set("format", exp.Literal.string(text))
            if _MARK in text or _DAY in text:
                node.replace(call("localcloud_cut_parts", node, type_="STRING"))
        else:
            continue
        found = True
    return found
