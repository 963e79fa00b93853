"""Terraform's files, parsed without its providers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hcl2

BLOCK = "__is_block__"
META = {"for_each", "count", "depends_on", "dynamic", BLOCK, "__comments__"}


class Folder:
    """A root module or a module: all blocks of a folder's files."""

    def __init__(self, path: Path) -> None:
        files = sorted(path.glob("*.tf"))
        self.path = path
        self.text = "".join(file.read_text(encoding="utf-8") for file in files)
        self.blocks: dict[str, list[dict[str, Any]]] = {}
        for file in files:
            with file.open(encoding="utf-8") as opened:
                for kind, found in plain(hcl2.load(opened)).items():
                    if isinstance(found, list):
                        self.blocks.setdefault(kind, []).extend(found)

    def named(self, kind: str) -> dict[str, Any]:
        """Blocks of one kind by their names: variables, outputs, modules, or all locals."""
        blocks = self.blocks.get(kind, [])
        return {name: value for block in blocks for name, value in block.items() if name != BLOCK}

    def resources(self, kind: str = "resource") -> list[tuple[str, str, dict[str, Any]]]:
        """Type, name and body of each resource, or of each `data`."""
        blocks = self.blocks.get(kind, [])
        return [(of, name, body) for one in blocks for of, by in one.items() for name, body in by.items()]

    def arguments_of(self, module: str) -> set[str]:
        """What a call of a module gives it."""
        return set(self.named("module")[module]) - META - {"source"}

    def dangling(self) -> set[str]:
        """What the files refer to and do not declare."""
        code = re.sub(r"#.*", "", re.sub(r'description\s*=\s*".*"', "", self.text))
        declared = {f"var.{name}" for name in self.named("variable")}
        declared |= {f"local.{name}" for name in self.named("locals")}
        declared |= {f"module.{name}" for name in self.named("module")}
        declared |= {f"data.{kind}.{name}" for kind, name, _ in self.resources("data")}
        declared |= {f"{kind}.{name}" for kind, name, _ in self.resources()}
        pattern = r"(?<![\w./])((?:var|local|module)\.\w+|data\.google_\w+\.\w+|google_\w+\.\w+)"
        return set(re.findall(pattern, code)) - declared


def misfits(body: dict[str, Any], schema: dict[str, Any], where: str) -> list[str]:
    """What a block has that its schema does not take, and what it lacks."""
    given = {name: value for name, value in body.items() if name not in META}
    for dynamic in body.get("dynamic", []):
        given |= {name: block["content"] for name, block in dynamic.items() if name != BLOCK}
    found = [f"{where}.{name}: unknown" for name in given if name not in schema]
    found += [f"{where}.{name}: missing" for name, needed in schema.items() if needed is True and name not in given]
    for name, blocks in given.items():
        if isinstance(schema.get(name), dict):
            for block in blocks:
                found += misfits(block, schema[name], f"{where}.{name}")
    return found


def plain(value: Any) -> Any:
    """Take the parser's quotes off names and texts."""
    if isinstance(value, dict):
        return {plain(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.removeprefix('"').removesuffix('"') if isinstance(value, str) else value
