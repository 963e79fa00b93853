"""Wheels made by hand: what a model's own package looks like, without a tool that builds one."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(
    folder: Path, name: str, files: Mapping[str, str], *, version: str = "1.0", tag: str = "py3-none-any"
) -> tuple[Path, str]:
    """Write a wheel; gives its path and its SHA-256.

    Args:
        folder: Where it goes.
        name: Of the distribution.
        files: Text by path; `entry_points.txt` goes to the metadata.
        version: Its version.
        tag: Python, ABI and platform that it is for.
    """
    info = f"{name}-{version}.dist-info"
    members = {(f"{info}/{path}" if path == "entry_points.txt" else path): text for path, text in files.items()}
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: {tag}\n"
    record = [f"{path},sha256={_record_digest(text)},{len(text.encode())}" for path, text in members.items()]
    members[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(zipfile.ZipInfo(member), text)
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def _record_digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
