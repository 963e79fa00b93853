"""Patches CONCAT and `||`: to bqemulator all of them are texts; and ARRAY_CONCAT with NULL.

| GoogleSQL | without it |
|---|---|
| CONCAT and `||` of BYTES: BYTES; of BYTES and texts together: refused | texts |
| `[1] || [2]` | a text |
| ARRAY_CONCAT with NULL: NULL | without it |
| CONCAT('a', 1.0): `a1` | `a1.0` |
| `'a' || 1`: refused | `a1` |

What a value is, DuckDB's `typeof` says when a statement is bound. Texts by their own look need nothing. Source: the
reference of string functions and operators, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

_REFUSED = "No matching signature for {}: its values must be all STRING or all BYTES"


def _kind_among(kinds: str) -> str:
    """Return what gives the kind of a value: of BYTES, a text, JSON, NULL, an array, and others, in this order."""
    kind = r"regexp_replace(typeof(x), '^.*\[\]$', '[]')"
    place = f"list_position(['BLOB', 'VARCHAR', 'JSON', '\"NULL\"', '[]'], {kind})"
    return f"list_extract([{kinds}], coalesce({place}, 6))"


MACROS: Mapping[str, str] = {
    "localcloud_pair(a, b)": "a || b",
    "localcloud_both(a, b)": "CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE list_concat(a, b) END",
    # Of BYTES as it is, of others their texts; of what it is, the second argument of `cast_to_type` is asked.
    "localcloud_piece(x)": (
        "CASE WHEN typeof(x) = 'BLOB' THEN cast_to_type(x, x || x) ELSE cast_to_type(localcloud_text(x), x || x) END"
    ),
    "localcloud_piece_kind(x)": _kind_among("'BYTES', 'STRING', 'STRING', NULL, 'ARRAY', 'other'"),
    # CONCAT takes what can be cast to a text.
    "localcloud_castable_kind(x)": _kind_among("'BYTES', 'STRING', 'STRING', NULL, 'other', 'STRING'"),
    "localcloud_joined(joined, kinds, refused)": (
        "list_extract([joined], CASE WHEN len(list_distinct(kinds)) > 1 OR list_contains(kinds, 'other')"
        " THEN CAST(refused AS BIGINT) ELSE 1 END)"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in reversed(list(tree.find_all(exp.ArrayConcat))):
        joined = node.this
        for other in node.expressions:
            joined = call("localcloud_both", joined, other, type_=None)
        node.replace(joined.copy())
        found = True
    for node in reversed(list(tree.find_all(exp.Concat, exp.DPipe))):
        if type(node) is type(node.parent):
            continue  # with the outermost one
        pieces = list(_pieces(node)) if isinstance(node, exp.Concat) else list(node.flatten(unnest=False))
        if all(map(_is_text, pieces)):
            continue
        node.replace(_joined(pieces, is_call=isinstance(node, exp.Concat)))
        found = True
    return found


def _pieces(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the pieces of a CONCAT, and those of CONCATs in their places."""
    for piece in node.expressions:
        if isinstance(piece, exp.Concat):
            yield from _pieces(piece)
        else:
            yield piece


def _is_text(piece: exp.Expression) -> bool:
    if isinstance(piece, exp.Literal | exp.Null):
        return not isinstance(piece, exp.Literal) or bool(piece.is_string)
    return isinstance(piece, exp.Cast) and bool(piece.to.is_type("text"))


def _joined(pieces: list[exp.Expression], *, is_call: bool) -> exp.Expression:
    if any(isinstance(piece, exp.Null) for piece in pieces):
        of_bytes = any(isinstance(piece, exp.ByteString) for piece in pieces)
        return exp.cast(exp.Null(), "BYTES" if of_bytes else "STRING", dialect="bigquery")
    kind = "localcloud_castable_kind" if is_call else "localcloud_piece_kind"
    kinds = exp.Array(expressions=[call(kind, piece, type_=None) for piece in pieces])
    joined, *others = [call("localcloud_piece", piece, type_=None) if is_call else piece.copy() for piece in pieces]
    for other in others:
        joined = call("localcloud_pair", joined, other, type_=None)
    refused = _REFUSED.format("function CONCAT" if is_call else "operator ||")
    return call("localcloud_joined", joined, kinds, refused, type_=None)
