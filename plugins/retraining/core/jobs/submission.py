"""A run's job as people submit it themselves: its JSON, the command of gcloud, the program of the SDK.

In: the custom job without the labels that say whose it is, so that no task takes a person's job for its own. Out: text.
https://cloud.google.com/sdk/gcloud/reference/ai/custom-jobs/create
"""

from __future__ import annotations

import functools
import json
import pprint
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import jinja2

from retraining.core.settings import data_path
from retraining.core.untyped import ProtoJson


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A custom job, and where it runs.

    Attributes:
        job: `CustomJob` in proto-JSON.
        project: Whose.
        region: Where.
    """

    job: ProtoJson  # Google's proto-JSON
    project: str
    region: str

    @property
    def json(self) -> str:
        """The job in the service's own JSON, with lowerCamelCase names."""
        return _json(camel_case(self.job))

    @property
    def command(self) -> str:
        """A command of gcloud for a POSIX shell, which needs no file beside it."""
        job = camel_case(self.job)
        labels = ",".join(f"{key}={value}" for key, value in sorted(job.get("labels", {}).items()))
        return _render(
            "job.sh.j2",
            region=shlex.quote(self.region),
            project=shlex.quote(self.project),
            name=shlex.quote(job["displayName"]),
            labels=shlex.quote(labels),
            spec=_json(job["jobSpec"]).strip(),
        )

    @property
    def program(self) -> str:
        """A program of the SDK."""
        return _render(
            "job.py.j2",
            job=pprint.pformat(camel_case(self.job), width=100),
            endpoint=repr(f"{self.region}-aiplatform.googleapis.com"),
            parent=repr(f"projects/{self.project}/locations/{self.region}"),
        )

    def files(self) -> Mapping[str, str]:
        """Return the three texts by the ending of their file."""
        return {"json": self.json, "sh": self.command, "py": self.program}


def camel_case(value: ProtoJson) -> ProtoJson:
    """Return a message's JSON with lowerCamelCase names; below `labels` the names are the user's own."""
    if isinstance(value, Mapping):
        return {_camel(name): item if name == "labels" else camel_case(item) for name, item in value.items()}
    return [camel_case(item) for item in value] if isinstance(value, list | tuple) else value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match.group(1).upper(), name)


def _json(value: ProtoJson) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _render(template: str, **values: str) -> str:
    return _environment().get_template(f"submit/{template}").render(**values)


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        autoescape=jinja2.select_autoescape(),  # by the files' endings: a shell's and Python's text is quoted above
        loader=jinja2.FileSystemLoader(data_path("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
