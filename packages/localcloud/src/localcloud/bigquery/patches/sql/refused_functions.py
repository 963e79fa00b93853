"""Refuses by name functions and columns that bqemulator answers otherwise than BigQuery.

| GoogleSQL | what bqemulator does |
|---|---|
| APPROX_TOP_SUM | the most frequent values, whatever their weights |
| PERCENTILE_CONT, PERCENTILE_DISC, APPROX_QUANTILES with RESPECT NULLS | without the NULLs |
| distances, lengths and areas of GEOGRAPHY | on another globe than BigQuery's sphere |
| `_PARTITIONTIME`, `_PARTITIONDATE` of a table that is partitioned by the time of loading | the time of the query |
| RANGE with a NULL, or UNBOUNDED, as its end | NULL of every question |
| COLLATE, of a value, a column, a table or a dataset | texts are compared letter by letter all the same |

Source: the reference of functions, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.refusals import refuse

_MEASURES = {"ST_DISTANCE", "ST_LENGTH", "ST_PERIMETER", "ST_AREA", "ST_DWITHIN", "ST_MAXDISTANCE"}
_LOADED = ("_PARTITIONTIME", "_PARTITIONDATE")
_COLLATIONS = (exp.Collate, exp.CollateColumnConstraint, exp.CollateProperty)
_LOOKED_AT = (
    exp.ApproxTopSum,
    exp.RespectNulls,
    exp.StDistance,
    exp.Anonymous,
    exp.Cast,
    exp.Column,
    *_COLLATIONS,
)
_NULLS_KEPT = {
    exp.PercentileCont: "PERCENTILE_CONT",
    exp.PercentileDisc: "PERCENTILE_DISC",
    exp.ApproxQuantiles: "APPROX_QUANTILES",
}


def rewrite(tree: exp.Expression) -> bool:
    """Refuse a statement's tree that asks for one; nothing is rewritten."""
    for node in tree.find_all(*_LOOKED_AT):
        if name := _refused(node):
            refuse(name)
    return False


def _refused(node: exp.Expression) -> str:
    """Return the name of what is not offered; "" for what is."""
    match node:
        case exp.ApproxTopSum():
            return "APPROX_TOP_SUM"
        case exp.Collate() | exp.CollateColumnConstraint() | exp.CollateProperty():
            return "COLLATE"
        case exp.RespectNulls() if type(node.this) in _NULLS_KEPT:
            return f"{_NULLS_KEPT[type(node.this)]} with RESPECT NULLS"
        case exp.Column() if node.name.upper() in _LOADED and not node.find_ancestor(exp.PartitionedByProperty):
            return f"{node.name.upper()}: when a row was loaded is not kept"
        case exp.StDistance():
            return "ST_DISTANCE: measures of GEOGRAPHY"
        case exp.Anonymous() if node.name.upper() in _MEASURES:
            return f"{node.name.upper()}: measures of GEOGRAPHY"
        case exp.Anonymous() if node.name.upper() == "RANGE" and any(isinstance(e, exp.Null) for e in node.expressions):
            return "RANGE without an end"
        case exp.Cast() if node.to.is_type("range") and _is_unbounded(node.this):
            return "RANGE without an end"
    return ""


def _is_unbounded(value: exp.Expression) -> bool:
    return isinstance(value, exp.Literal) and any(word in value.this.upper() for word in ("UNBOUNDED", "NULL"))
