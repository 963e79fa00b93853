"""Mappings whose form is somebody else's. The name says whose: nowhere else stands a `dict` of any values."""

from __future__ import annotations

from typing import Any, TypeAlias

ProtoJson: TypeAlias = dict[str, Any]
"""A message of Google's in proto-JSON with snake_case names."""

ApiJson: TypeAlias = dict[str, Any]
"""A part of a request or an answer of Google's REST interfaces: columns, parameters, options."""

Row: TypeAlias = dict[str, Any]
"""A row of a BigQuery answer, by column."""

JsonObject: TypeAlias = dict[str, Any]
"""A stored JSON document before it is held to its contract, or as it is written."""

XCom: TypeAlias = dict[str, Any]
"""What a task leaves for others: Airflow keeps any JSON."""

Facets: TypeAlias = dict[str, Any]
"""Facets of an OpenLineage event by their keys, as its client's classes."""

YamlValues: TypeAlias = dict[str, Any]
"""Values of a model's YAML file, or of the form, before or without the checks of the spec."""

Foreign: TypeAlias = Any
"""An argument or an answer of another package's function, passed on as it came."""

TemplateValues: TypeAlias = dict[str, Any]
"""What an SQL template is given."""
