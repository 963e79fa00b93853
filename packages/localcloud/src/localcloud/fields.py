"""What becomes of every field and parameter of a service's requests, as its folder's `fields.json` says.

In: `fields.json`, and the requests that come. Out: what is kept of a request, or what is wrong with it. The tables of
the documentation are rendered from the same files, and a test holds them against Google's own lists of fields: so
nothing that a client asks for is dropped without a word.

    resources    name of a resource -> path of a field -> fate. Paths go through objects by `.` and through lists by
                 `[]`; `*` stands for any name, and what is below `**` is another resource of the file
    parameters   method, or `*` for all of them -> name of a parameter of the address -> fate
    headers      name of a header field that one API of the service reads, or the beginning of names with `*` -> fate

A fate is one of four words, and after a colon what to say about it:

    kept         it comes back when the resource is read
    held         it has its effect
    ignored      it may be given and is not looked at, for the reason that follows
    refused      it is refused by its name, for the reason that follows, unless it says what is so anyway (false, none),
                 which `refused unless A|B: …` may name
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from localcloud.untyped import Untyped

_NOTHING: tuple[Untyped, ...] = (None, False, "", {}, [])


class Fate(StrEnum):
    """What becomes of a field."""

    KEPT = "kept"
    HELD = "held"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A field's fate, and why or how."""

    fate: Fate
    reason: str = ""
    unless: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Rule:
        """Read a fate as `fields.json` writes it.

        Raises:
            ValueError: It is none, or one that needs a reason has none.
        """
        words, _, reason = text.partition(": ")
        word, _, values = words.partition(" unless ")
        rule = cls(fate=Fate(word), reason=reason, unless=tuple(values.split("|")) if values else ())
        if rule.fate in (Fate.IGNORED, Fate.REFUSED) and not reason:
            raise ValueError(f"{text!r} has no reason. Expected '{word}: …'.")
        return rule

    def takes(self, value: Untyped) -> bool:
        """Whether a value may be given: one of a field that is refused says what is so anyway."""
        return self.fate is not Fate.REFUSED or _says_nothing(value) or str(value) in self.unless


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A field that is not taken; without a rule it is unknown, and `close` is what may have been meant."""

    path: str
    rule: Rule | None = None
    close: str = ""


@dataclass(frozen=True)
class Table:
    """The rules of one resource, one method's parameters or one API's header fields, by path."""

    rules: Mapping[str, Rule]

    def rule_of(self, path: str) -> Rule | None:
        """Return a field's rule; None for one that has none."""
        return self.rules.get(path)

    def problems(self, document: Mapping[str, Any], at: str = "") -> Iterator[Problem]:
        """Yield what is unknown or refused in a document, in its order.

        Args:
            at: Where the document stands in the resource: "" or a path with `.` behind it.
        """
        for name, value in document.items():
            path = self._path(at, name)
            rule = self.rules.get(path)
            if rule is None:
                yield Problem(path=f"{at}{name}", close=self._close(at, name))
            elif not rule.takes(value):
                yield Problem(path=f"{at}{name}", rule=rule)
            elif rule.fate is not Fate.REFUSED and rule.fate is not Fate.IGNORED and f"{path}.**" not in self.rules:
                for below, mark in _objects(value):
                    yield from self.problems(below, f"{path}{mark}.")

    def kept(self, document: Mapping[str, Any], at: str = "") -> dict[str, Any]:
        """Return a document without what is ignored or says nothing of what is refused.

        Args:
            document: One without problems.
        """
        found: dict[str, Any] = {}
        for name, value in document.items():
            path = self._path(at, name)
            fate = self.rules[path].fate
            if fate is Fate.IGNORED or (fate is Fate.REFUSED and value is not False):
                continue
            found[name] = value if f"{path}.**" in self.rules else self._kept_below(value, path)
        return found

    def _kept_below(self, value: Untyped, path: str) -> Untyped:
        if isinstance(value, dict):
            return self.kept(value, f"{path}.")
        if isinstance(value, list):
            return [self.kept(each, f"{path}[].") if isinstance(each, dict) else each for each in value]
        return value

    def _path(self, at: str, name: str) -> str:
        return f"{at}*" if f"{at}*" in self.rules else f"{at}{name}"

    def _close(self, at: str, name: str) -> str:
        known = (path.removeprefix(at) for path in sorted(self.rules) if path.startswith(at))
        return next((each for each in known if each.lower() == name.lower()), "")


@dataclass(frozen=True, kw_only=True)
class Fields:
    """All of a service's tables, by the names of resources and methods."""

    resources: Mapping[str, Table]
    parameters: Mapping[str, Table]
    headers: Mapping[str, Rule]

    def parameter(self, method: str, name: str) -> Rule | None:
        """Return the rule of a method's parameter; None where the method has no such parameter."""
        tables = (self.parameters[each] for each in (method, "*") if each in self.parameters)
        return next((rule for table in tables if (rule := table.rule_of(name)) is not None), None)

    def header(self, name: str) -> Rule | None:
        """Return the rule of a header field, by its name in lower case; None for one that has none."""
        if name in self.headers:
            return self.headers[name]
        marks = (each for each in self.headers if each.endswith("*"))
        return next((self.headers[mark] for mark in marks if name.startswith(mark[:-1])), None)


def read_fields(path: Path) -> Fields:
    """Read a service's `fields.json`.

    Raises:
        ValueError: A fate in it is none.
    """
    document = json.loads(path.read_text(encoding="utf-8"))

    def tables(kind: str) -> dict[str, Table]:
        return {name: Table(_rules(rules)) for name, rules in document.get(kind, {}).items()}

    return Fields(
        resources=tables("resources"), parameters=tables("parameters"), headers=_rules(document.get("headers", {}))
    )


def _rules(texts: Mapping[str, str]) -> dict[str, Rule]:
    return {name: Rule.read(text) for name, text in texts.items()}


def _says_nothing(value: Untyped) -> bool:
    """Whether a value is none, or an object of such values."""
    return value in _NOTHING or (isinstance(value, dict) and all(_says_nothing(each) for each in value.values()))


def _objects(value: Untyped) -> list[tuple[Mapping[str, Any], str]]:
    """Return the objects in a value, with what stands for the way to them."""
    if isinstance(value, dict):
        return [(value, "")]
    return [(each, "[]") for each in value if isinstance(each, dict)] if isinstance(value, list) else []
