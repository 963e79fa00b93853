"""The source of this checkout as syntax trees, for tests that read it; nothing of it is imported."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.packages import PACKAGES

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = {
    "dags": REPOSITORY / "dags",
    "retraining": REPOSITORY / "plugins" / "retraining",
    "trainer": REPOSITORY / "trainer",
    "localcloud": REPOSITORY / "packages" / "localcloud" / "src" / "localcloud",
    "demo": REPOSITORY / "dev" / "demo",
    "retraining_laptop": REPOSITORY / "packages" / "laptop" / "src" / "retraining_laptop",
    "bench": REPOSITORY / "packages" / "bench" / "src" / "bench",
    "localcloud_conformance": REPOSITORY / "packages" / "localcloud" / "conformance" / "src" / "localcloud_conformance",
    "tfdv": REPOSITORY / "dev" / "tfdv",
    "containers": REPOSITORY / "dev" / "containers",
    "contracts": REPOSITORY / "dev" / "contracts",
    "wheels": REPOSITORY / "dev" / "wheels",
    "composer": REPOSITORY / "dev" / "composer",
}


@dataclass(frozen=True, kw_only=True)
class Import:
    """One imported module: its dotted name, its line, whether it runs at import time, and whether only for types."""

    target: str
    line: int
    at_module_level: bool
    for_types: bool


@dataclass(frozen=True, kw_only=True)
class Source:
    """A Python file of the product: its dotted module name and its syntax tree."""

    module: str
    path: Path
    tree: ast.Module

    @property
    def where(self) -> str:
        """Path from the repository's root."""
        return self.path.relative_to(REPOSITORY).as_posix()

    @property
    def package(self) -> str:
        """Its package."""
        return package_of(self.module) or ""

    @functools.cached_property
    def imports(self) -> tuple[Import, ...]:
        """All its imports, relative ones resolved."""
        return tuple(_imports(self))


def package_of(module: str) -> str | None:
    """Return the package of a module; None when it is not of this repository."""
    packages = [package for package in PACKAGES if module == package or module.startswith(f"{package}.")]
    return max(packages, key=len, default=None)


def _read(path: Path, root_name: str, root: Path) -> Source:
    parts = [root_name, *path.relative_to(root).with_suffix("").parts]
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Source(module=module, path=path, tree=ast.parse(path.read_text(encoding="utf-8"), str(path)))


def read_product() -> list[Source]:
    """Return every Python file of the product (not of the tests)."""
    return [
        _read(path, name, root)
        for name, root in SOURCE_ROOTS.items()
        for path in sorted(root.rglob("*.py"))
        if "__pycache__" not in path.parts
    ]


def _imports(source: Source) -> Iterator[Import]:
    def walk(node: ast.AST, at_module_level: bool, for_types: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = at_module_level and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing_only = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            if isinstance(child, ast.Import | ast.ImportFrom):
                for target in _targets(source, child):
                    yield Import(target=target, line=child.lineno, at_module_level=inside, for_types=typing_only)
            yield from walk(child, inside, typing_only)

    yield from walk(source.tree, True, False)


def _targets(source: Source, node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    package = node.module or ""
    if node.level:
        own = source.module.split(".")
        depth = node.level - (1 if source.path.name == "__init__.py" else 0)
        package = ".".join([*own[: len(own) - depth], *([node.module] if node.module else [])])
    return [f"{package}.{alias.name}" for alias in node.names]


PRODUCT = read_product()
MODULES = {source.module for source in PRODUCT}


def in_packages(*packages: str) -> list[Source]:
    """Return the product's files of some packages."""
    return [source for source in PRODUCT if source.package in packages]


def begins_with(target: str, names: set[str]) -> bool:
    """Say whether a dotted name is one of, or below one of, some packages."""
    return any(target == name or target.startswith(f"{name}.") for name in names)


def one_per_line(findings: list[str]) -> str:
    """Return a message for an assertion."""
    return "\n".join(["", *findings])
