"""`python -m trainer.tools.submit`: prints the `gcloud ai custom-jobs create …` of a job, ready to paste.

    --custom-job FILE --region R                  of a whole job, as JSON (`-`: standard input)
    --request URI --image-uri IMAGE --region R    of one task of a run, on one machine

It submits nothing. The job's spec is passed as a here-string in bash, so the command needs no file beside it.
https://cloud.google.com/sdk/gcloud/reference/ai/custom-jobs/create
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.contract.json_text import read_json
from trainer.errors import ContractError, RequestError, TrainerError
from trainer.storage import Storage

_TASKS = {"export_request": "export", "train_request": "train", "evaluate_request": "evaluate"}
_DISPLAY_NAME_BYTES = 128
Json = Any  # a JSON value


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the command; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.tools.submit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--custom-job", metavar="FILE", help="JSON of a CustomJob, snake_case or camelCase")
    source.add_argument("--request", metavar="URI", help="address of an export, train or evaluate request")
    parser.add_argument("--region", required=True)
    parser.add_argument("--project", help="default: gcloud's own")
    parser.add_argument("--image-uri", help="the trainer's image; with --request")
    parser.add_argument("--machine-type", default="n1-standard-4", help="with --request")
    options = parser.parse_args(arguments)
    try:
        job = _read_job(options.custom_job) if options.custom_job else _request_job(options)
        print(render_command(job, region=options.region, project=options.project))
    except TrainerError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def render_command(job: Mapping[str, Json], *, region: str, project: str | None = None) -> str:
    """Return the command line for bash.

    Args:
        job: A CustomJob in the service's JSON, snake_case or camelCase.
        project: Whose; default gcloud's own.

    Raises:
        ContractError: The job has no display name or no spec.
    """
    job = camel_case(job)
    name, spec = job.get("displayName"), job.get("jobSpec")
    if not name or not isinstance(spec, Mapping) or len(name.encode()) > _DISPLAY_NAME_BYTES:
        raise ContractError(
            "custom job",
            f"displayName {name!r}, jobSpec {type(spec).__name__}",
            "a name of at most 128 bytes, an object",
        )
    arguments = ["gcloud", "ai", "custom-jobs", "create", f"--region={region}"]
    arguments += [f"--project={project}"] if project else []
    arguments += [f"--display-name={name}"]
    labels = ",".join(f"{key}={value}" for key, value in sorted(job.get("labels", {}).items()))
    arguments += [f"--labels={labels}"] if labels else []
    arguments += ["--config=/dev/stdin"]
    content = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return f"{shlex.join(arguments)} <<< {shlex.quote(content)}"


def camel_case(value: Json) -> Json:
    """Return a message's JSON with lowerCamelCase names. Below `labels` the names are the user's own."""
    if isinstance(value, Mapping):
        return {_camel(name): item if name == "labels" else camel_case(item) for name, item in value.items()}
    return [camel_case(item) for item in value] if isinstance(value, list) else value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match.group(1).upper(), name)


def _read_job(path: str) -> Json:
    try:
        job = read_json(sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError(path, f"cannot be read: {error}", "JSON of a CustomJob") from error
    if not isinstance(job, Mapping):
        raise ContractError(path, f"is a {type(job).__name__}", "JSON of a CustomJob")
    return job


def _request_job(options: argparse.Namespace) -> Json:
    """Return a job on one machine for a stored request."""
    if not options.image_uri:
        raise RequestError("command line", "--request without --image-uri", "the address of the trainer's image")
    content = Storage().read_object(options.request)
    try:
        request: Any = read_json(content or b"")
        task = _TASKS[request["kind"]]
        name = f"{request['model']}__{task}__{request['run_key']}"
    except (ValueError, KeyError, TypeError) as error:
        raise ContractError(
            options.request, f"is no request ({error!r})", f"a document of kind {', '.join(_TASKS)}"
        ) from error
    container = {
        "imageUri": options.image_uri,
        "command": ["python", "-m", "trainer.task"],
        "args": [task, f"--request={options.request}"],
    }
    pool = {"machineSpec": {"machineType": options.machine_type}, "replicaCount": 1, "containerSpec": container}
    labels = {"retraining-model": request["model"], "retraining-run": request["run_key"], "retraining-task": task}
    return {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool]}, "labels": labels}


if __name__ == "__main__":
    sys.exit(main())
