"""Patches `CAST(… FORMAT …)` between BYTES and STRING, which is refused; other formats are refused by name.

| GoogleSQL | what stands for it |
|---|---|
| `CAST(s AS BYTES FORMAT 'HEX')`, 'BASE64' | `FROM_HEX(s)`, `FROM_BASE64(s)` |
| `CAST(b AS STRING FORMAT 'BASE64')` | `TO_BASE64(b)` |

`CAST(b AS STRING FORMAT 'HEX')` is refused: `TO_HEX` takes numbers, too, which BigQuery would not cast so.
Source: the reference of format elements, cloud.google.com/bigquery/docs/reference/standard-sql/format-elements.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.refusals import refuse

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
        if name not in functions or isinstance(cast, exp.TryCast):
            refuse(f"CAST to {cast.to.sql(dialect='bigquery')} with FORMAT {elements.sql(dialect='bigquery')}")
        cast.replace(functions[name](this=cast.this.copy()))
        found = True
    return found
