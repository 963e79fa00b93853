"""The docs say what is there, and all of it: Make targets, settings, keys of a model's YAML, flags, files, links.

Comes in: the Markdown files of this checkout, and the code they are about. Goes out: a list of what does not fit.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from contracts.keys import keys
from retraining.__main__ import PROGRAM
from retraining.core import documents
from retraining.core.settings import SETTINGS

REPOSITORY = Path(__file__).resolve().parents[1]
COMPOSER = REPOSITORY / "docs" / "composer.md"
MODEL_SPEC = REPOSITORY / "docs" / "model-spec.md"
TRAINING = REPOSITORY / "docs" / "training.md"
TEST_PATHS = [path for folder in ("tests", "packages") for path in (REPOSITORY / folder).rglob("test_*.py")]
LOCALCLOUD = REPOSITORY / "packages" / "localcloud"


def markdown_paths() -> list[Path]:
    """Return every page that people read."""
    folders = ("docs", "dags", "dev", "infra", "examples", "packages")
    return sorted([*REPOSITORY.glob("*.md"), *(path for name in folders for path in (REPOSITORY / name).rglob("*.md"))])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """A Markdown page: its text, and the pieces of it that are code (spans, and lines of fenced blocks)."""

    path: Path
    text: str

    @property
    def code(self) -> list[str]:
        """Code spans, then lines of fenced blocks."""
        blocks = re.findall(r"^```\w*\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)
        prose = re.sub(r"^```.*?^```", "", self.text, flags=re.MULTILINE | re.DOTALL)
        return [*re.findall(r"`([^`\n]+)`", prose), *(line for block in blocks for line in block.splitlines())]

    @property
    def where(self) -> str:
        """Path from the repository's root."""
        return self.path.relative_to(REPOSITORY).as_posix()


PAGES = [Page(path=path, text=path.read_text(encoding="utf-8")) for path in markdown_paths()]
ALL_CODE = [(page, code) for page in PAGES for code in page.code]


def page(path: Path) -> Page:
    """Return one page."""
    return next(found for found in PAGES if found.path == path)


def table_rows(of: Page) -> Iterator[list[str]]:
    """Return the cells of each table row of a page, without head and rule."""
    for line in of.text.splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|\s:-]+", line):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def found_in_code(pattern: str) -> dict[str, str]:
    """Return what a pattern's group finds in code on any page, with the page."""
    return {match: page.where for page, code in ALL_CODE for match in re.findall(pattern, code)}


def make_targets() -> set[str]:
    """Return the targets that `make help` lists."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    phony = {name for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE) for name in line.split()}
    rules = {name for line in re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.MULTILINE) for name in line.split()}
    assert phony == rules, "a target without .PHONY, or the other way round"
    return phony


@functools.cache
def help_lines() -> dict[str, str]:
    """Return what `make help` says of each target that it lists."""
    shown = subprocess.run(["make", "-s", "help"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    entries = re.findall(r"^  ([a-z][a-z-]*) +(\S.*(?:\n {22} .*)*)$", shown, re.MULTILINE)
    return {target: " ".join(text.split()) for target, text in entries}


def recipes() -> dict[str, str]:
    """Return each target's recipe, the lines below its rule."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z][a-z-]*):(?!=)[^\n]*\n((?:\t[^\n]*\n|  [^\n]*\n)*)", makefile, re.MULTILINE))


def make_variables() -> set[str]:
    """Return the variables that people may set on Make's command line."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE))


class TestMake:
    """Targets and variables of the Makefile."""

    def test_every_named_target_exists(self) -> None:
        """What the docs tell people to type works."""
        named = found_in_code(r"(?<![\w-])make ([a-z][a-z-]*)")
        assert named
        assert not {name: where for name, where in named.items() if name not in make_targets()}

    def test_every_target_has_its_line_in_help(self) -> None:
        """`make help` leaves none out, and says something of each."""
        assert set(help_lines()) == make_targets()

    def test_help_names_the_variables_of_each_target(self) -> None:
        """Those that its recipe reads, but for the interpreter, which `setup` explains; no other ones."""
        explained = help_lines()
        missing: dict[str, set[str]] = {}
        unknown: dict[str, set[str]] = {}
        for target, recipe in recipes().items():
            named = set(re.findall(r"\b([A-Z_]+)=", explained[target]))
            missing[target] = {each for each in make_variables() - {"PYTHON"} if f"$({each})" in recipe} - named
            unknown[target] = named - make_variables()
        assert not {target: names for target, names in missing.items() if names}
        assert not {target: names for target, names in unknown.items() if names}

    def test_variables_exist_and_are_named(self) -> None:
        """`KEEP=0` and its like: what the docs name exists, and `make help` names what exists."""
        on_make_lines = {
            name for _, code in ALL_CODE if code.startswith("make ") for name in re.findall(r"\b([A-Z_]+)=", code)
        }
        assert on_make_lines <= make_variables()
        assert set(re.findall(r"\b([A-Z_]+)=", " ".join(help_lines().values()))) == make_variables()

    def test_pages_that_help_names_exist(self) -> None:
        """`docs/models.md` and its like lead somewhere."""
        pages = re.findall(r"[\w./-]+/[\w-]+\.md", " ".join(help_lines().values()))
        assert pages
        assert not [name for name in pages if not (REPOSITORY / name).is_file()]


class TestSettings:
    """Environment variables."""

    def test_every_named_setting_exists(self) -> None:
        """No page invents one."""
        known = {setting.variable for setting in SETTINGS.values()}
        named = found_in_code(r"(RETRAINING_[A-Z_]*[A-Z])")
        assert not {name: where for name, where in named.items() if name not in known}

    def test_table_has_each_setting_with_its_default(self) -> None:
        """The table for Composer is whole and right."""
        rows = {row[0].strip("`"): row[1].strip("`") for row in table_rows(page(COMPOSER)) if "`RETRAINING_" in row[0]}
        words = {None: "required", "": "empty"}
        assert rows == {each.variable: words.get(each.default, each.default) for each in SETTINGS.values()}


SPEC_KEYS = list(keys())


class TestModelSpec:
    """Keys of a model's YAML file."""

    def test_every_key_has_its_row_and_its_words(self) -> None:
        """The tables are rendered; a key that no table has, or of which nothing is said, is none that anyone finds."""
        rows = {row[0].strip("`") for row in table_rows(page(MODEL_SPEC)) if len(row) == 4 and row[3]}
        assert {key.name for key in SPEC_KEYS} <= rows

    def test_named_keys_exist(self) -> None:
        """A dotted key that another page names is one."""
        known = {key.name.replace("[]", "") for key in SPEC_KEYS}
        top = "|".join({name.partition(".")[0] for name in known if "." in name})  # `jobs.query` is of BigQuery
        named = found_in_code(rf"^((?:{top})(?:\.[a-z_]+)+)$")
        others = (".json", ".html", ".googleapis.com")  # files, and hosts
        assert not {name: where for name, where in named.items() if name not in known and not name.endswith(others)}


def _flags(source: Path | click.Group) -> set[str]:
    """Return the options of a program's commands, or those that a file's argument parsers have."""
    if isinstance(source, click.Group):
        parameters = (each for command in source.commands.values() for each in command.params)
        return {option for each in parameters for option in each.opts if option.startswith("--")}
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return {
        argument.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
        for argument in node.args
        if isinstance(argument, ast.Constant) and str(argument.value).startswith("--")
    }


COMMANDS: dict[str, tuple[Path | click.Group, Path]] = {
    "localcloud": (
        LOCALCLOUD / "src" / "localcloud" / "command" / "cli.py",
        LOCALCLOUD / "docs" / "localcloud.md",
    ),
    "retraining": (PROGRAM, REPOSITORY / "docs" / "operations.md"),
    "trainer.task": (REPOSITORY / "trainer" / "task.py", REPOSITORY / "docs" / "documents.md"),
}


class TestCommandLine:
    """Flags of the commands that people type."""

    @pytest.mark.parametrize("module", COMMANDS)
    def test_named_flags_exist(self, module: str) -> None:
        """A flag on a line with the command is one of its flags."""
        named = {
            flag: page.where
            for page, code in ALL_CODE
            if re.search(rf"(?:-m |^|\$\(){re.escape(module)}(?![\w.])", code)
            for flag in re.findall(r"(?<![\w-])(--[a-z][a-z_-]*)", code.split(" -- ")[0])  # behind it: another command
        }
        assert not {flag: where for flag, where in named.items() if flag not in _flags(COMMANDS[module][0])}

    @pytest.mark.parametrize("module", COMMANDS)
    def test_flags_are_documented(self, module: str) -> None:
        """The command's page has a row or a line for each of its flags, and no row for another."""
        source, of = COMMANDS[module]
        assert _flags(source) <= set(re.findall(r"(?<![\w-])(--[a-z][a-z_-]*)", "\n".join(page(of).code)))
        rows = {row[0].strip("`") for row in table_rows(page(of)) if re.fullmatch(r"`--[a-z][a-z-]*`", row[0])}
        assert rows <= _flags(source)

    def test_every_command_has_its_row(self) -> None:
        """`python -m retraining …`: the page has a row for each, and for no other."""
        _, of = COMMANDS["retraining"]
        section = of.read_text(encoding="utf-8").partition("## From a shell\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `([a-z-]+)[^`]*` \|", section, re.MULTILINE)) == set(PROGRAM.commands)

    def test_named_modules_exist(self) -> None:
        """`python -m x.y` leads to a file."""
        images = REPOSITORY.glob("examples/*/image")
        packages = REPOSITORY.glob("packages/*/src")
        roots = [REPOSITORY, REPOSITORY / "dev", *packages, REPOSITORY / "plugins", *images]
        named = found_in_code(r"python -m ([a-z_.]+[a-z_])")
        assert named
        missing = {
            name: where
            for name, where in named.items()
            if not any(
                (root / name.replace(".", "/")).with_suffix(".py").exists()
                or (root / name.replace(".", "/") / "__main__.py").exists()
                for root in roots
            )
        }
        assert not missing


class TestDocuments:
    """The run's record."""

    def test_each_kind_is_in_one_table(self) -> None:
        """docs/documents.md has one row for each document with a contract, and names no other."""
        rows = [row[0].strip("`") for row in table_rows(page(REPOSITORY / "docs" / "documents.md"))]
        kinds = [kind.kind_name() for kind in _kinds(documents.Document)]
        assert sorted(row.removesuffix(".json") for row in rows if row.endswith(".json")) == sorted(kinds)


def _kinds(of: type[documents.Document]) -> Iterator[type[documents.Document]]:
    """Yield the classes whose documents are stored: the others are of files beside the code, and of tests."""
    if "kind" in of.model_fields and of.__module__.startswith(documents.__name__):
        yield of
    for each in of.__subclasses__():
        yield from _kinds(each)


def _slug(heading: str) -> str:
    """Return the anchor that a heading gets."""
    words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return words.strip().replace(" ", "-")


class TestLinksAndPaths:
    """Where the docs point to."""

    @pytest.mark.parametrize("of", PAGES, ids=lambda of: of.where)
    def test_relative_links_resolve(self, of: Page) -> None:
        """Also their anchors."""
        broken = []
        for target in re.findall(r"\]\(([^)\s]+)\)", of.text):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = (of.path.parent / file).resolve() if file else of.path
            headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE) if path.suffix == ".md" else []
            if not path.exists() or (anchor and anchor not in map(_slug, headings)):
                broken.append(target)
        assert not broken

    def test_named_files_exist(self) -> None:
        """A path in code that begins with one of the top-level folders is there."""
        named = found_in_code(r"^((?:dags|plugins|trainer|include|dev|packages|tests|docs)/[\w./*-]+)$")
        assert named
        # `trainer/checkpoints` and its like stand for folders in the bucket; none of those begins with a folder's name.
        missing = {name: where for name, where in named.items() if not any(REPOSITORY.glob(name.rstrip("/")))}
        saved_by_the_reader = {
            path for page in PAGES for path in re.findall(r"^.*Save as `([^`]+)`", page.text, re.MULTILINE)
        }
        assert not {name: where for name, where in missing.items() if name not in saved_by_the_reader}

    def test_named_tests_exist(self) -> None:
        """`tests/folder/test_file.py::test_name`: the function is there."""
        named = found_in_code(r"((?:packages/\w+/)?tests/[\w/]+\.py::\w+)")
        assert named
        gone = {}
        for name, where in named.items():
            path, _, function = name.partition("::")
            text = (REPOSITORY / path).read_text(encoding="utf-8") if (REPOSITORY / path).exists() else ""
            if not re.search(rf"^\s*def {function}\(", text, re.MULTILINE):
                gone[name] = where
        assert not gone

    def test_every_requirement_names_a_test_or_a_command(self) -> None:
        """Rows of the table of ids: no row points at a file as a whole, or at nothing."""
        rows = [row for row in table_rows(page(TRAINING)) if row[0].startswith("S-")]
        assert len(rows) > 30
        assert not [row for row in rows if "::test_" not in row[2] and "`make " not in row[2]]

    def test_every_page_is_reached_from_the_readme(self) -> None:
        """Nobody must guess that a page exists."""
        reached, todo = set(), [REPOSITORY / "README.md"]
        while todo:
            path = todo.pop()
            if path in reached or path.suffix != ".md" or not path.exists():
                continue
            reached.add(path)
            for target in re.findall(r"\]\(([^)\s#]+)", path.read_text(encoding="utf-8")):
                found = (path.parent / target).resolve()
                todo.append(found / "README.md" if found.is_dir() else found)
        assert {found.path for found in PAGES if "runbooks" not in found.path.parts} == reached

    def test_every_decision_says_what_violates_it(self) -> None:
        """A record that nothing can violate decides nothing."""
        records = sorted((REPOSITORY / "docs" / "decisions").glob("[0-9]*.md"))
        assert records
        assert not [path.name for path in records if "A change violates this decision when it " not in path.read_text()]

    def test_the_evidence_of_every_decision_is_there(self) -> None:
        """The tests that a record names exist; a record that another one replaced needs none."""
        tests = "\n".join(path.read_text(encoding="utf-8") for path in TEST_PATHS)
        for path in sorted((REPOSITORY / "docs" / "decisions").glob("[0-9]*.md")):
            text = path.read_text(encoding="utf-8")
            if "Superseded by" in text:
                continue
            named = re.findall(r"`(test_\w+)`", text.partition("**Evidence.**")[2])
            assert named, f"{path.name}: no test under Evidence"
            assert not [name for name in named if f"def {name}(" not in tests], path.name


# Put together from pieces, so that this file does not have what it looks for.
REGISTRY_HOSTS = [
    ".".join(pieces)
    for pieces in (
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("conda", "anaconda", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("rubygems", "org"),
        ("repo", "maven", "apache", "org"),
        ("deb", "debian", "org"),
    )
]
# A made-up home in a test and the folder of Composer's image are no paths of a machine.
HARMLESS_HOMES = ("/home/me", "/home/airflow")


def tracked_files() -> list[Path]:
    """Return the files that git tracks, or would after `git add`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.decode().split("\0") if name and (path := REPOSITORY / name).is_file()]


class TestTrackedFiles:
    """What must not be in any file."""

    def test_no_package_registry(self) -> None:
        """Where packages come from is the business of whoever installs them."""
        findings = [
            f"{path.relative_to(REPOSITORY)}: {host}"
            for path in tracked_files()
            for host in REGISTRY_HOSTS
            if host.encode() in path.read_bytes()
        ]
        assert not findings

    def test_no_path_of_a_machine(self) -> None:
        """A checkout works wherever it lies."""
        homes = "|".join(("home", "Users", "root", "wo" + "rk"))
        pattern = re.compile(rf"(?<![\w.~$}}>*-])(?:{re.escape(str(REPOSITORY))}(?![\w-])|/(?:{homes})/[\w.-]+)")
        findings = []
        for path in tracked_files():
            text = path.read_bytes().decode("utf-8", errors="replace")
            found = {match for match in pattern.findall(text) if not match.startswith(HARMLESS_HOMES)}
            findings += [f"{path.relative_to(REPOSITORY)}: {match}" for match in sorted(found)]
        assert not findings
