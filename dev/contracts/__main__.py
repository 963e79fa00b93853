"""`python -m contracts`: write all that follows from the models, and delete what follows no more."""

from __future__ import annotations

from pathlib import Path

from contracts.files import REPOSITORY_PATH, generated_paths, render_files


def main() -> None:
    """Write the files and print their paths."""
    files = render_files()
    for path in generated_paths() - set(files):
        path.unlink()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(_relative(path))


def _relative(path: Path) -> str:
    return path.relative_to(REPOSITORY_PATH).as_posix()


if __name__ == "__main__":
    main()
