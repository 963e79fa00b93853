"""Names of GoogleSQL: functions, types, statements and parts of times, from `words.json`.

Source: cloud.google.com/bigquery/docs/reference/standard-sql: functions-all, data-types, data-definition-language,
dml-syntax, procedural-language, timestamp_functions#extract.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Final

_WORDS: Final[dict[str, list[str]]] = json.loads(
    resources.files("localcloud.bigquery.language").joinpath("words.json").read_text(encoding="utf-8")
)


def _words(of: str) -> frozenset[str]:
    return frozenset(_WORDS[of])


NOT_ANSWERED: Final = _words("not_answered")
"""Functions that BigQuery has, and the local cloud does not."""
NAMESPACES: Final = _words("namespaces")
"""What stands before names of functions that belong to no dataset."""
TYPES: Final = _words("types")
STATEMENTS: Final = _words("statements")
"""What a statement, or a part of one of a script, begins with."""
CREATED: Final = _words("created")
"""What a CREATE makes: the first word of it."""
PARTS: Final = _words("parts")
"""What EXTRACT gives."""
INTERVAL_PARTS: Final = _words("interval_parts")
