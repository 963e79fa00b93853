"""Many features in one entry of the YAML file: those of the query's columns that a pattern names.

A run's plan has the columns themselves: the query is asked for them when the plan is made, and nothing after it knows
patterns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, get_args

from pydantic import (
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
    Tag,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from retraining.core.spec.features import Feature
from retraining.core.spec.section import Section
from retraining.core.untyped import YamlValues

Pattern = Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z0-9_]*\*[A-Za-z0-9_*]*$")]
"""Letters, digits, `_`, and at least one `*`, which stands for any text."""

_ANY_COLUMN = "any_column"


class FeaturePattern(Section):
    """Features of the columns that a pattern names, all of one kind with the same options."""

    names: Pattern
    """Instead of `name`, for many columns of one kind: `mean_*`, where `*` stands for any text
    ([patterns](#patterns-of-features))."""
    feature: Feature = Field(exclude=True)
    """What each of them is; its name is none."""

    @model_validator(mode="before")
    @classmethod
    def _take_apart(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        options = {key: item for key, item in value.items() if key != "names"}
        if "name" in options:
            raise ValueError("name and names in one entry: a column, or a pattern of columns. Remove one of them")
        return {"names": value["names"], "feature": {**options, "name": _ANY_COLUMN}}

    @model_serializer(mode="plain")
    def _put_together(self) -> YamlValues:
        return {"names": self.names, **self.feature.model_dump(mode="json", exclude={"name"})}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return what editors know of an entry."""
        del core_schema, handler
        tags = [section.model_fields["kind"] for section in get_args(get_args(Feature)[0])]
        kinds = [kind for tag in tags for kind in get_args(tag.annotation)]
        return {
            "type": "object",
            "properties": {"names": {"type": "string", "maxLength": 128}, "kind": {"enum": kinds}},
            "required": ["kind", "names"],
        }

    def columns_among(self, columns: Sequence[str], taken: Collection[str]) -> tuple[str, ...]:
        """Return those of the columns that it names, in their order, without what is taken (in lower case)."""
        return tuple(name for name in columns if fnmatchcase(name, self.names) and name.lower() not in taken)

    def of_column(self, name: str) -> Feature:
        """Return the feature of one column."""
        return self.feature.model_copy(update={"name": name})


def _form(value: object) -> str:
    of_patterns = isinstance(value, FeaturePattern) or (isinstance(value, dict) and "names" in value)
    return "pattern" if of_patterns else "column"


FeatureEntry = Annotated[
    Annotated[Feature, Tag("column")] | Annotated[FeaturePattern, Tag("pattern")], Discriminator(_form)
]
"""An entry of the list `features`."""


def resolve_entries(
    entries: Sequence[Feature | FeaturePattern], columns: Sequence[str], taken: Collection[str]
) -> tuple[list[Feature], dict[str, tuple[str, ...]]]:
    """Return the features in the file's order, and which columns each pattern gave.

    A column that stands in the file by its name, or that an earlier pattern named, is left to that; so are STRUCTs'
    fields, whose names have dots.

    Args:
        entries: Of the file.
        columns: Of the query, in its order.
        taken: What is no feature: key, event time, labels.
    """
    named = {name.lower() for name in taken}
    named |= {entry.name.lower() for entry in entries if not isinstance(entry, FeaturePattern)}
    features: list[Feature] = []
    matched: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        if not isinstance(entry, FeaturePattern):
            features.append(entry)
            continue
        found = entry.columns_among([name for name in columns if "." not in name], named)
        named |= {name.lower() for name in found}
        features += [entry.of_column(name) for name in found]
        matched[entry.names] = found
    return features, matched
