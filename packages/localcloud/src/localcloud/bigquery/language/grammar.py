"""Clauses and signs that sqlglot's parser takes for GoogleSQL and BigQuery does not.

In: a statement's tokens or its tree. Out: what BigQuery says of the first that it refuses, or nothing.

Sources: cloud.google.com/bigquery/docs/reference/standard-sql: query-syntax, lexical, dml-syntax,
data-definition-language, operators, aggregate-function-calls, timestamp_functions#extract.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot.tokens import Token, TokenType  # type: ignore[import-not-found]

from localcloud.bigquery.language.names import CREATED, INTERVAL_PARTS, PARTS, STATEMENTS

_SECOND_WORDS = {"LOAD": "DATA", "TRUNCATE": "TABLE"}
_BEFORE_CREATED = frozenset({"OR", "REPLACE", "TEMP", "TEMPORARY"})
_OVER_WINDOWS = (exp.PercentileCont, exp.PercentileDisc, exp.FirstValue, exp.LastValue, exp.NthValue)
_ADDED = frozenset({"COLUMN", "PRIMARY", "FOREIGN", "CONSTRAINT"})
_SIGNS = {
    TokenType.DCOLON: "::", TokenType.ARROW: "->", TokenType.DARROW: "->>", TokenType.NULLSAFE_EQ: "<=>",
    TokenType.DAMP: "&&", TokenType.HEREDOC_STRING: "$",
}  # fmt: skip

_IN_NAMES = (TokenType.DOT, TokenType.DASH)
_MOST = 2**63 - 1
"""The largest INT64."""
_SPELLINGS = {(TokenType.NOT, "!"), (TokenType.EQ, "==")}


def of_words(tokens: Sequence[Token]) -> str | None:
    """Return what is said of a statement for its words and signs alone."""
    if not tokens:
        return None
    wrong = (_sign(token) or _pair(token, following) for token, following in pairwise([*tokens, None]))
    looks = (_glued, _added, _named, _intervals)
    return _begun(tokens) or next(filter(None, (*wrong, *(look(tokens) for look in looks))), None)


def _begun(tokens: Sequence[Token]) -> str | None:
    words = " ".join(token.text.upper() for token in tokens[:3]).split()
    if tokens[0].token_type == TokenType.IDENTIFIER or words[0] not in STATEMENTS:
        # A block of a script may have a label: `name: LOOP`.
        is_label = len(tokens) > 1 and tokens[1].token_type == TokenType.COLON
        return None if is_label else _unexpected(tokens[0])
    second = _SECOND_WORDS.get(words[0])
    if second and words[1:2] != [second]:
        return f"Syntax error: Expected keyword {second}{_at(tokens[min(1, len(tokens) - 1)])}"
    if words[0] == "CREATE":
        made = next((token for token in tokens[1:] if token.text.upper() not in _BEFORE_CREATED), tokens[0])
        return None if made.text.upper() in CREATED else _unexpected(made)
    return None


def _sign(token: Token) -> str | None:
    if token.token_type in _SIGNS:
        return f'Syntax error: Unexpected "{_SIGNS[token.token_type]}"{_at(token)}'
    if token.token_type == TokenType.MOD and token.text == "%":
        return f'Syntax error: Illegal input character "%"{_at(token)}'
    if (token.token_type, token.text) in _SPELLINGS:
        return f'Syntax error: Unexpected "{token.text}"{_at(token)}'
    return None


def _glued(tokens: Sequence[Token]) -> str | None:
    """Return what is said of `1_000`, a number and its alias; parts of `a-1b.2013_c` are names."""
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        is_part = before is not None and before.token_type in _IN_NAMES and before.end + 1 == token.start
        if token.token_type != TokenType.NUMBER or following.start != token.end + 1 or is_part:
            continue
        if following.token_type == TokenType.VAR or following.text[:1].isalpha():
            return f"Syntax error: Missing whitespace between literal and alias{_at(following)}"
    return None


def _pair(token: Token, following: Token | None) -> str | None:
    if following is None:
        return None
    words = token.text.upper(), following.text.upper()
    if words == ("WITHIN", "GROUP"):
        return _unexpected(token)
    if words == ("WITH", "ORDINALITY") or (token.token_type == TokenType.STAR and words[1] == "EXCLUDE"):
        return _unexpected(following)
    return None


def _named(tokens: Sequence[Token]) -> str | None:
    """Return what is said of a column's name that is a text, and of `LIMIT 1, 2`."""
    if {token.text.upper() for token in tokens[:4]} & {"FUNCTION", "PROCEDURE", "AGGREGATE", "ASSERT"}:
        return None
    turned = any(token.text.upper() == "UNPIVOT" for token in tokens)  # there the names of rows are texts
    for token, following, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        if token.text.upper() == "AS" and following.token_type == TokenType.STRING and not turned:
            return f"Syntax error: Unexpected string literal '{following.text}'{_at(following)}"
        is_count = token.text.upper() == "LIMIT" and following.token_type == TokenType.NUMBER
        if is_count and after is not None and after.token_type == TokenType.COMMA:
            return f'Syntax error: Expected end of input but got ","{_at(after)}'
    return None


def _added(tokens: Sequence[Token]) -> str | None:
    if [token.text.upper() for token in tokens[:2]] != ["ALTER", "TABLE"]:
        return None
    for token, following in pairwise(tokens):
        if token.text.upper() == "ADD" and following.text.upper() not in _ADDED:
            return _unexpected(following)
    return None


def _intervals(tokens: Sequence[Token]) -> str | None:
    for token, value, part in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        if token.text.upper() != "INTERVAL" or value.token_type not in {TokenType.STRING, TokenType.NUMBER}:
            continue
        is_calculated = value.token_type == TokenType.NUMBER and part is not None and not part.text[:1].isalpha()
        if not is_calculated and (part is None or part.text.upper() not in INTERVAL_PARTS):
            found = "end of statement" if part is None else part.text
            return f"Syntax error: A valid date part name is required but found {found}{_at(part or value)}"
    return None


def _unexpected(token: Token) -> str:
    what = "identifier" if token.token_type in {TokenType.VAR, TokenType.IDENTIFIER} else "keyword"
    return f"Syntax error: Unexpected {what} {token.text}{_at(token)}"


def _at(token: Token) -> str:
    return f" at [{token.line}:{max(1, token.col - len(token.text) + 1)}]"


def of_tree(tree: exp.Expression) -> str | None:
    """Return what is said of a statement for its clauses."""
    for node in tree.walk():
        look = _LOOKS.get(type(node))
        if look is not None and (said := look(node)):
            return said
    return None


def _never(what: str) -> Callable[[exp.Expression], str]:
    return lambda _: f"Syntax error: Unexpected {what}"


def _whole(node: exp.Literal) -> str | None:
    """Refuse a whole number that no INT64 is; the least one is the negative of one that is none."""
    if node.is_string or not node.name.isdecimal():
        return None
    most = _MOST + 1 if isinstance(node.parent, exp.Neg) else _MOST
    return f"Invalid integer literal: {node.name[:100]}" if int(node.name[:100]) > most else None


def _limit(node: exp.Limit) -> str | None:
    return _count("LIMIT", node.expression)


def _offset(node: exp.Offset) -> str | None:
    query = node.parent
    if isinstance(query, exp.Query) and query.args.get("limit") is None:
        return "Syntax error: Unexpected keyword OFFSET"
    return _count("OFFSET", node.expression)


def _count(clause: str, value: exp.Expression) -> str | None:
    if isinstance(value, exp.Null):
        return f"{clause} must not be null"
    if isinstance(value, exp.Neg):
        return f'Syntax error: Unexpected "-" after {clause}'
    if isinstance(value, exp.Literal) and not value.is_int:
        kind = "string" if value.is_string else "floating point"
        return f"Syntax error: Unexpected {kind} literal {value.name} after {clause}"
    if value.find(exp.Query, exp.Column, exp.Rand):
        return f"{clause} expects an integer literal or parameter"
    return None


def _set_operation(node: exp.SetOperation) -> str | None:
    name = "INTERSECT" if isinstance(node, exp.Intersect) else "EXCEPT"
    if not isinstance(node, exp.Union) and not node.args.get("distinct"):
        return f"{name} ALL is not supported"
    inner = (side for side in (node.this, node.expression) if isinstance(side, exp.SetOperation))
    if any((type(side), side.args.get("distinct")) != (type(node), node.args.get("distinct")) for side in inner):
        return (
            "Syntax error: Different set operations cannot be used in the same query without using parentheses for"
            " grouping"
        )
    return None


def _distinct(node: exp.Distinct) -> str | None:
    return "Syntax error: Unexpected keyword ON" if node.args.get("on") is not None else None


def _values(node: exp.Values) -> str | None:
    return None if isinstance(node.parent, exp.Insert) else "Syntax error: Unexpected keyword VALUES"


def _cte(node: exp.CTE) -> str | None:
    return "Syntax error: Unexpected keyword MATERIALIZED" if node.args.get("materialized") is not None else None


def _between(node: exp.Between) -> str | None:
    return "Syntax error: Unexpected keyword SYMMETRIC" if node.args.get("symmetric") is not None else None


def _select(node: exp.Select) -> str | None:
    if node.args.get("locks"):
        return "Syntax error: Unexpected keyword FOR"
    if node.args.get("into") is not None:
        return "Syntax error: Unexpected keyword INTO"
    return _ambiguous(node)


def _ambiguous(node: exp.Select) -> str | None:
    """Return what is said of a column whose name the only query in FROM gives to two values."""
    source = (node.args.get("from_") or node.args.get("from") or exp.From()).this
    query = source.this if isinstance(source, exp.Subquery) and not node.args.get("joins") else None
    if not isinstance(query, exp.Select) or query.is_star:
        return None
    values: dict[str, set[str]] = {}
    for value in query.selects:
        if isinstance(value, exp.Alias | exp.Column):
            values.setdefault(value.alias_or_name.lower(), set()).add(value.unalias().sql("bigquery"))
    twice = {name for name, of in values.items() if len(of) > 1}
    for column in node.find_all(exp.Column) if twice else ():
        if column.name.lower() in twice and column.parent_select is node:
            return f"Column name {column.name} is ambiguous"
    return None


def _sample(node: exp.TableSample) -> str | None:
    return None if (node.args.get("method") or exp.Var()).name.upper() == "SYSTEM" else "TABLESAMPLE must name SYSTEM"


def _extract(node: exp.Extract) -> str | None:
    part = node.this.name.upper() if isinstance(node.this, exp.Var | exp.Column) else str(node.this.this)
    if isinstance(node.this, exp.WeekStart | exp.Anonymous | exp.Week) or part in PARTS:
        return None
    return f"A valid date part name is required but found {part}"


def _interval(node: exp.Interval) -> str | None:
    unit = node.args.get("unit")
    if isinstance(unit, exp.Var) and unit.name.upper() not in INTERVAL_PARTS:
        return f"A valid date part name is required but found {unit.name}"
    return None


def _frame(node: exp.WindowSpec) -> str | None:
    if node.args.get("exclude") is not None:
        return "Syntax error: Unexpected keyword EXCLUDE"
    return "Syntax error: Unexpected keyword GROUPS" if node.args.get("kind") == "GROUPS" else None


def _join(node: exp.Join) -> str | None:
    """Sides without a condition, but of arrays, and what FULL JOIN joins by: a constant, or an equality."""
    side, on = str(node.args.get("side") or "").upper(), node.args.get("on")
    if not side:
        return None
    if on is None and not node.args.get("using"):
        return None if _is_array(node) else f"{side} JOIN must have an immediately following ON or USING clause"
    if side != "FULL" or on is None or on.find(exp.Column) is None:
        return None
    if any(map(_joins, on.flatten() if isinstance(on, exp.And) else [on])):
        return None
    of = "of fields from both sides of the join"
    return f"FULL OUTER JOIN cannot be used without a condition that is an equality {of}"


def _is_array(join: exp.Join) -> bool:
    """Return whether what is joined is UNNEST(…), or an array of a table beside it, as in `t LEFT JOIN t.items`."""
    if not isinstance(join.this, exp.Table):
        return not isinstance(join.this, exp.Subquery)
    select = join.parent
    if not isinstance(select, exp.Select) or join.this.args.get("db") is None:
        return False
    sources = [select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or [])]
    return join.this.parts[0].name in {source.this.alias_or_name for source in sources if source is not None}


def _joins(condition: exp.Expression) -> bool:
    equal = condition.unnest()
    return isinstance(equal, exp.EQ) and all(side.find(exp.Column, exp.Dot) for side in (equal.this, equal.expression))


def _table(node: exp.Table) -> str | None:
    if isinstance(node.this, exp.Func) and not node.args.get("db"):
        name = node.this.meta.get("name") or node.this.name or node.this.sql_name()
        return f"Table-valued function not found: {name}"
    return None


def _separator(node: exp.GroupConcat) -> str | None:
    separator = node.args.get("separator")
    if separator is None or isinstance(separator, exp.Literal | exp.Parameter | exp.Placeholder | exp.RawString):
        return None
    if isinstance(separator, exp.ByteString | exp.Null | exp.Cast):
        return None
    return "Argument 2 to STRING_AGG must be a literal or query parameter"


def _update(node: exp.Update) -> str | None:
    if isinstance(node.parent, exp.When):
        return None
    if node.args.get("limit") is not None or node.args.get("order") is not None:
        return "Syntax error: Expected end of input but got keyword LIMIT"
    return None if node.args.get("where") is not None else "UPDATE must have a WHERE clause"


def _delete(node: exp.Delete) -> str | None:
    if node.args.get("using"):
        return "Syntax error: Unexpected keyword USING"
    return None if node.args.get("where") is not None else "DELETE must have a WHERE clause"


def _insert(node: exp.Insert) -> str | None:
    for name, word in (("alternative", "OR"), ("conflict", "ON"), ("by_name", "BY"), ("overwrite", "OVERWRITE")):
        if node.args.get(name):
            return f"Syntax error: Unexpected keyword {word}"
    return None


def _drop(node: exp.Drop) -> str | None:
    if node.args.get("cascade") and (node.args.get("kind") or "").upper() not in {"SCHEMA", "DATABASE"}:
        return "Syntax error: Expected end of input but got keyword CASCADE"
    return None


def _key(node: exp.Expression) -> str | None:
    definition = node.find_ancestor(exp.Schema, exp.Create, exp.Alter) or node
    return None if "NOT ENFORCED" in definition.sql("bigquery").upper() else "Enforced primary keys are not supported"


def _window_only(node: exp.Expression) -> str | None:
    of = node.parent
    while isinstance(of, exp.IgnoreNulls | exp.RespectNulls | exp.Paren):
        of = of.parent
    if isinstance(of, exp.Window):
        return None
    name = str(node.meta.get("name") or node.sql_name()).lower()
    return f"Analytic function {name} cannot be called without an OVER clause"


_Look = Callable[[exp.Expression], str | None]
_LOOKS: Mapping[type[exp.Expression], _Look] = {
    exp.Literal: _whole,
    exp.Limit: _limit,
    exp.Offset: _offset,
    exp.Fetch: _never("keyword FETCH"),
    **dict.fromkeys((exp.Intersect, exp.Except, exp.Union), _set_operation),
    exp.Distinct: _distinct,
    exp.Values: _values,
    exp.CTE: _cte,
    exp.Between: _between,
    exp.Select: _select,
    exp.TableSample: _sample,
    exp.Extract: _extract,
    exp.Interval: _interval,
    exp.Table: _table,
    exp.WindowSpec: _frame,
    exp.Join: _join,
    exp.GroupConcat: _separator,
    exp.Update: _update,
    exp.Delete: _delete,
    exp.Insert: _insert,
    exp.Drop: _drop,
    exp.PrimaryKeyColumnConstraint: _key,
    exp.UniqueColumnConstraint: _never("keyword UNIQUE"),
    exp.CheckColumnConstraint: _never("keyword CHECK"),
    exp.AutoIncrementColumnConstraint: _never("keyword AUTOINCREMENT"),
    exp.Filter: _never('"(" after FILTER'),
    exp.WithinGroup: _never("keyword WITHIN"),
    exp.Lateral: _never("keyword LATERAL"),
    exp.Comprehension: _never("keyword FOR"),
    **dict.fromkeys(
        (exp.PercentileCont, exp.PercentileDisc, exp.FirstValue, exp.LastValue, exp.NthValue), _window_only
    ),
}
