"""Patches arrays of structs in FROM: each field of an element is a column, `SELECT x FROM t, UNNEST(t.parts)`.

| GoogleSQL | without it |
|---|---|
| `SELECT x`, `value.x` of an element | refused: there is no such column |
| `SELECT *` over an UNNEST | one column, a struct, in the place of its fields |
| `SELECT *` over `UNNEST([(1, 'a')])`, fields without names: `f0_`, `f1_` | the same |
| `parts.x` of `FROM t, t.parts`, a path without an alias | refused |
| `FROM UNNEST(…) AS a, a.parts` | a table that is not there |
| `parts` alone of `FROM t, t.parts`, which is refused by name | the array in each row |

In: a statement in GoogleSQL, the columns of the tables that it reads. Out: the statement with the fields named by their
element. The same statement where the elements' type is not known. Source: the reference of UNNEST,
cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#unnest_operator.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches import signatures
from localcloud.bigquery.patches.sql.column_names import UNNAMED
from localcloud.bigquery.patches.sql.table_paths import put_before
from localcloud.bigquery.patches.sql.text_escapes import with_characters
from localcloud.bigquery.types.parameters import give_types
from localcloud.bigquery.types.trees import only_tree
from localcloud.bigquery.types.typed import typed_queries
from localcloud.bigquery.types.written import ColumnsOf
from localcloud.refusals import NotOfferedError, refuse
from localcloud.untyped import Untyped

_MARK = "localcloud_unnest"
_ELEMENT, _SOURCE = "localcloud_element_", "localcloud_source_"
_PLACES = re.compile(r"\bUNNEST\b|(?:,|\bJOIN\b)\s*[`\w]+\.[`\w]", re.IGNORECASE)
"""What a statement with an array in FROM has: the word, or a comma or JOIN before a path."""
_NO_NAME = re.compile(r"_field_\d+")
"""What the service calls a struct's field without a name, counted from 1."""
_OWN_NAMES = (exp.Order, exp.Group, exp.Having, exp.Qualify)
"""Clauses in which a name given in SELECT comes before a column's."""


class AmbiguousError(ValueError):
    """Two sources have a column of the name; the text is the service's."""


def apply(executor: Untyped) -> None:
    """Rewrite each statement before it is looked at, also those of scripts."""
    from bqemulator.scripting import interpreter

    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_named(bq_sql: str, **kwargs: Untyped) -> str:
        statement = named(bq_sql, kwargs["project_id"], kwargs["ctx"], signatures.current_parameters())
        return str(await translate(statement, **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_named


def named(statement: str, project: str, ctx: Untyped, parameters: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return a statement that names fields of elements by the element.

    Args:
        project: Of tables that are named without one.
        ctx: Has the catalog.
        parameters: As REST sends them.

    Raises:
        InvalidQueryError: A name is that of several columns.
        UnsupportedFeatureError: It is not known whose columns `*` leaves out.
    """
    from bqemulator.domain.errors import InvalidQueryError, UnsupportedFeatureError

    try:
        return rewrite(statement, lambda table: signatures.columns_of_table(table, project, ctx), parameters)
    except AmbiguousError as error:
        raise InvalidQueryError(str(error)) from error
    except NotOfferedError as error:
        raise UnsupportedFeatureError(str(error)) from error


def rewrite(statement: str, columns_of: ColumnsOf, parameters: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return a statement that names fields of elements by the element.

    Raises:
        AmbiguousError: A name is that of several columns.
        NotOfferedError: It is not known whose columns `*` leaves out.
    """
    if len(statement) > signatures.MOST_CHARACTERS or not _PLACES.search(statement):
        return statement
    tree = only_tree(with_characters(statement))
    if tree is None or tree.find(exp.Unnest) is None:
        return statement
    has_paths = sum(map(_name_path, _paths(tree))) > 0
    fields = _fields(tree, columns_of, parameters)
    if not fields:
        return str(tree.sql(dialect="bigquery")) if has_paths else statement
    scopes = {id(select): _Scope.of(select, fields, columns_of) for select in tree.find_all(exp.Select)}
    before = tree.sql(dialect="bigquery")
    for column in list(tree.find_all(exp.Column)):
        _name_field(column, scopes)
    for scope in scopes.values():
        scope.expand_stars()
    after = str(tree.sql(dialect="bigquery"))
    return statement if after == before and not has_paths else after


def _paths(tree: exp.Expression) -> Iterator[exp.Unnest]:
    """Yield the arrays in FROM that are written as a path: `t.parts`, as a table of a dataset may be, too."""
    for join in list(tree.find_all(exp.Join)):
        path, select = join.this, join.parent
        if isinstance(path, exp.Table) and path.db and not path.catalog and isinstance(select, exp.Select):
            before = [select.args["from_"].this, *(each.this for each in select.args["joins"] if each is not join)]
            elements = [_Source(node=each, columns=None) for each in before if isinstance(each, exp.Unnest)]
            if any(source.name.lower() == path.db.lower() for source in elements):  # the parser knows tables alone
                column = exp.column(path.this.copy(), table=path.args["db"].copy())
                alias = [path.args["alias"].this.copy()] if path.args.get("alias") else []
                made = exp.Unnest(expressions=[column])
                made.set("alias", exp.TableAlias(columns=alias) if alias else None)
                join.set("this", made)
        if isinstance(join.this, exp.Unnest) and "offset" not in join.this.args:
            yield join.this


def _name_path(unnest: exp.Unnest) -> bool:
    """Give an array in FROM a name where it has only that at the end of its path; tell whether it is to be written.

    The name would be a column's, too.

    Raises:
        NotOfferedError: The name stands for a column, or for an element: it is not known for which.
    """
    path, select = unnest.expressions[0], unnest.find_ancestor(exp.Select)
    if unnest.args.get("alias") is not None or not isinstance(path, exp.Column) or select is None:
        return unnest.args.get("alias") is not None and isinstance(path, exp.Column)
    name = path.name
    bare = (each for each in select.find_all(exp.Column) if not each.table and each is not path)
    if any(each.name.lower() == name.lower() for each in bare):
        refuse(f"{path.sql(dialect='bigquery')} in FROM beside a column {name}: write AS and another name behind it")
    if any(isinstance(each, exp.Star) for each in select.expressions):
        return True
    element = exp.to_identifier(f"{_ELEMENT}of_{name}", quoted=True)
    unnest.set("alias", exp.TableAlias(columns=[element]))
    for each in list(select.find_all(exp.Column)):
        first, *fields = each.parts
        if fields and first.name.lower() == name.lower() and each is not path:
            put_before(each, element, fields)
    return True


def _fields(
    tree: exp.Expression, columns_of: ColumnsOf, parameters: Sequence[Mapping[str, Any]]
) -> dict[int, tuple[str, ...]]:
    """Return by the place of an UNNEST the names of its elements' fields; those of other elements are left out."""
    found: dict[int, tuple[str, ...]] = {}
    unnests = list(tree.find_all(exp.Unnest))
    for place, unnest in enumerate(unnests):
        unnest.meta[_MARK] = place
        if names := _name_written_fields(unnest):
            found[place] = names
    if len(found) == len(unnests):
        return found
    for query in typed_queries(give_types(tree.copy(), parameters), columns_of):
        for unnest in query.find_all(exp.Unnest):
            kind = unnest.expressions[0].type if len(unnest.expressions) == 1 else None
            element = kind.expressions[0] if kind is not None and kind.is_type("array") and kind.expressions else None
            if not isinstance(element, exp.DataType) or not element.is_type("struct"):
                continue
            names = tuple(field.name if isinstance(field, exp.ColumnDef) else "" for field in element.expressions)
            if names and all(names):
                found[unnest.meta.get(_MARK, -1)] = names
    return found


def _name_written_fields(unnest: exp.Unnest) -> tuple[str, ...]:
    """Return the names of fields in an array that is written out, whatever their types; name those without one."""
    array = unnest.expressions[0].unnest() if len(unnest.expressions) == 1 else None
    first = array.expressions[0].unnest() if isinstance(array, exp.Array) and array.expressions else None
    if not isinstance(first, exp.Struct | exp.Tuple):
        return ()
    fields = [_named_field(field, number) for number, field in enumerate(first.expressions, 1)]
    first.replace(exp.Struct(expressions=fields))
    return tuple(field.this.name for field in fields)


def _named_field(field: exp.Expression, number: int) -> exp.PropertyEQ:
    if isinstance(field, exp.PropertyEQ):
        return field.copy()
    name = field.name if isinstance(field, exp.Column) else f"_field_{number}"
    return exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=field.copy())


@dataclass(kw_only=True)
class _Source:
    """What a FROM clause reads: a table, a query, or the elements of an array.

    Attributes:
        node: In the statement.
        columns: Names of its columns; None: they are not known.
        fields: Names of its elements' fields, where they are structs.
    """

    node: exp.Expression
    columns: tuple[str, ...] | None
    fields: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the statement calls it; "" for nothing."""
        alias = self.node.args.get("alias")
        if isinstance(self.node, exp.Unnest) and alias is not None and alias.args.get("columns"):
            return str(alias.args["columns"][0].name)
        return str(self.node.alias_or_name)

    def named(self, place: int) -> str:
        """Return its name, which it gets where it has none."""
        if not self.name:
            is_array = isinstance(self.node, exp.Unnest)
            name = exp.to_identifier(f"{_ELEMENT if is_array else _SOURCE}{place}")
            self.node.set("alias", exp.TableAlias(columns=[name]) if is_array else exp.TableAlias(this=name))
        return self.name

    @property
    def offset(self) -> str:
        """The name of its `WITH OFFSET`; "" where it has none."""
        offset = self.node.args.get("offset")
        return str(offset.name) if isinstance(offset, exp.Expression) else "offset" if offset else ""


@dataclass(kw_only=True)
class _Scope:
    """A SELECT with what its FROM clause reads."""

    select: exp.Select
    sources: list[_Source]

    @classmethod
    def of(cls, select: exp.Select, fields: Mapping[int, tuple[str, ...]], columns_of: ColumnsOf) -> _Scope:
        """Read a SELECT's FROM clause."""
        nodes = [select.args["from_"].this] if select.args.get("from_") else []
        nodes += [join.this for join in select.args.get("joins") or []]
        sources = []
        for node in nodes:
            columns = columns_of(node) if isinstance(node, exp.Table) else None
            known = None if columns is None else tuple(columns)
            sources.append(_Source(node=node, columns=known, fields=fields.get(node.meta.get(_MARK, -1), ())))
        return cls(select=select, sources=sources)

    def expand_stars(self) -> None:
        """Put fields in the place of each `*`, and of each `element.*` that has some without a name."""
        if not any(source.fields for source in self.sources):
            return
        for star in list(self.select.expressions):
            if isinstance(star, exp.Star):
                self._replace(star, self._columns_of_star(star))
            elif isinstance(star, exp.Column) and isinstance(star.this, exp.Star):
                named = (
                    place for place, source in enumerate(self.sources) if source.name.lower() == star.table.lower()
                )
                place = next(named, None)
                if place is not None and any(map(_NO_NAME.fullmatch, self.sources[place].fields)):
                    self._replace(star, self._fields_of(place, _StarColumns(star.this)))

    def _replace(self, star: exp.Expression, columns: Iterable[exp.Expression]) -> None:
        given = self.select.expressions
        place = next(number for number, each in enumerate(given) if each is star)
        self.select.set("expressions", [*given[:place], *columns, *given[place + 1 :]])

    def _columns_of_star(self, star: exp.Star) -> list[exp.Expression]:
        if any(join.args.get("using") or join.args.get("method") for join in self.select.args.get("joins") or []):
            refuse("SELECT * over UNNEST of structs beside a join by USING: name the columns")
        star_columns = _StarColumns(star)
        made = [each for place in range(len(self.sources)) for each in self._columns_of(place, star_columns)]
        if star_columns.left:
            refuse("SELECT * EXCEPT or REPLACE over several sources beside UNNEST of structs: name the columns")
        return made

    def _columns_of(self, place: int, star: _StarColumns) -> Iterator[exp.Expression]:
        source = self.sources[place]
        table = exp.to_identifier(source.named(place), quoted=True)
        is_array = isinstance(source.node, exp.Unnest)
        if not is_array and source.columns is None:
            unknown = [each for each in self.sources if each.columns is None and not isinstance(each.node, exp.Unnest)]
            known = {
                name.lower() for each in self.sources for name in (*each.fields, each.offset, *(each.columns or ()))
            }
            yield exp.Column(this=star.rest(known) if len(unknown) == 1 else exp.Star(), table=table)
        for name in () if is_array else source.columns or ():
            yield from star.give(name, exp.column(exp.to_identifier(name, quoted=True), table=table.copy()))
        yield from self._fields_of(place, star)
        if is_array and not source.fields:
            yield from star.give(source.name, exp.column(table.copy()))
        if source.offset:
            yield from star.give(source.offset, exp.column(exp.to_identifier(source.offset, quoted=True)))

    def _fields_of(self, place: int, star: _StarColumns) -> Iterator[exp.Expression]:
        source = self.sources[place]
        for name in source.fields:
            table = exp.to_identifier(source.named(place), quoted=True)
            column = exp.column(exp.to_identifier(name, quoted=True), table=table)
            alias = f"{UNNAMED}{name}" if _NO_NAME.fullmatch(name) else ""
            yield from star.give(name, exp.alias_(column, alias) if alias else column)


class _StarColumns:
    """What a `*` leaves out and puts in the place of columns, by source."""

    def __init__(self, star: exp.Star) -> None:
        self._dropped = {each.name.lower(): each for each in star.args.get("except_") or []}
        self._replaced = {each.alias.lower(): each for each in star.args.get("replace") or []}

    @property
    def left(self) -> set[str]:
        """Names that no source had."""
        return {*self._dropped, *self._replaced}

    def give(self, name: str, column: exp.Expression) -> Iterator[exp.Expression]:
        """Yield a column, what stands in its place, or nothing."""
        if self._dropped.pop(name.lower(), None) is None:
            yield self._replaced.pop(name.lower(), column)

    def rest(self, known: set[str]) -> exp.Star:
        """Return the `*` of the one source whose columns are not known: what it leaves out is what no other has."""
        star = exp.Star()
        for key, names in (("except_", self._dropped), ("replace", self._replaced)):
            mine = [name for name in names if name not in known]
            if mine:
                star.set(key, [names.pop(name) for name in mine])
        return star


def _name_field(column: exp.Column, scopes: Mapping[int, _Scope]) -> None:
    """Put the element's name before a column that is a field of it."""
    if column.find_ancestor(exp.Star) is not None and not column.find_ancestor(exp.Alias):
        return  # a name that EXCEPT leaves out
    first = column.parts[0].name.lower()
    for scope, node in _enclosing(column, scopes):
        if not column.table and _is_own_name(column, scope.select, first):
            return
        if any(first in (source.name.lower(), source.offset.lower()) for source in scope.sources):
            return
        with_field = [
            (place, source)
            for place, source in enumerate(scope.sources)
            if source.node is not node and first in map(str.lower, source.fields)
        ]
        is_column = any(first in map(str.lower, source.columns or ()) for source in scope.sources)
        if len(with_field) + is_column > 1:
            raise AmbiguousError(f"Column name {column.parts[0].name} is ambiguous")
        if with_field:
            place, source = with_field[0]
            _put_element_before(column, source, source.named(place))
        if with_field or is_column:
            return


def _put_element_before(column: exp.Column, source: _Source, element: str) -> None:
    """Name a field as its struct does: DuckDB groups by an expression's letters, and names do not mind case."""
    written = column.parts[0].name
    spelled = next(field for field in source.fields if field.lower() == written.lower())
    is_output = column.arg_key == "expressions" and isinstance(column.parent, exp.Select)
    column.parts[0].set("this", spelled)
    if is_output and not column.table and spelled != written:
        column = column.replace(exp.alias_(column.copy(), written, quoted=True)).this
    put_before(column, exp.to_identifier(element, quoted=True), column.parts)


def _enclosing(column: exp.Column, scopes: Mapping[int, _Scope]) -> Iterator[tuple[_Scope, exp.Expression]]:
    """Yield the queries around a column whose sources it sees, the nearest first, and the source that it stands in."""
    node: exp.Expression = column
    source: exp.Expression = column
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.CTE):
            return
        if isinstance(parent, exp.From | exp.Join) and node.arg_key == "this":
            source = node
        if isinstance(parent, exp.Select):
            if not isinstance(source, exp.Subquery):  # one in FROM does not see what is beside it
                yield scopes[id(parent)], source
            source = parent
        node = parent


def _is_own_name(column: exp.Column, select: exp.Select, name: str) -> bool:
    """Return whether a column of ORDER BY and the like is one of the names that SELECT gives."""
    clause = column.find_ancestor(*_OWN_NAMES, exp.Select)
    if not isinstance(clause, _OWN_NAMES) or clause.parent is not select:
        return False
    return any(isinstance(each, exp.Alias) and each.alias.lower() == name for each in select.expressions)
