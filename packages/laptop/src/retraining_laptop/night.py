"""The story of one night of somebody's model, from an empty machine to an answer of the endpoint.

Comes in: options of `retraining demo`; standard input is a pipe that `python -m retraining_laptop` holds, and its end
ends this too. Goes out: text for a person; exit code 0 only if the run succeeded.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from retraining_laptop.dag_run import Outcome, predict, run_dag
from retraining_laptop.story import play, say, tell
from retraining_laptop.summary import answer_lines, data_lines, failed_lines, model_lines
from retraining_laptop.system import System

NAME = "retraining demo"
RUN_TIMEOUT_S = 3600
IMAGES = "$region-docker.pkg.dev/$project/retraining"


def main() -> int:
    """Run the night; return the process's exit code."""
    options = _parse()
    return play(NAME, options.home, lambda: _tell(options))


def cloud_config(version: str, trainer_python: Path, include: Path) -> dict[str, object]:
    """Return what the local cloud is told of whom it serves.

    Args:
        version: Of the trainer.
        trainer_python: The interpreter that stands for its image, and serves its models.
        include: Folder of the models.
    """
    environment = {"python": str(trainer_python)}
    return {
        "bucket": "local-retraining",
        "variables": {
            "RETRAINING_PROJECT": "$project",
            "RETRAINING_REGION": "$region",
            "RETRAINING_BUCKET": "$bucket",
            "RETRAINING_DATASET": "retraining",
            "RETRAINING_TRAINER_IMAGE": f"{IMAGES}/trainer:{version}",
            "RETRAINING_SERVING_IMAGE": f"{IMAGES}/tensorflow-serving:2.19.1",
            "RETRAINING_GCP_CONN_ID": "google_cloud_default",
            "RETRAINING_WAKE_INTERVAL_S": "2",
            "RETRAINING_WATCH_S": "120",
            "RETRAINING_INCLUDE": str(include),
        },
        "environments": {"trainer": environment, "tensorflow": environment},
        "images": [{"pattern": "*/retraining/trainer:*", "use": "training", "environment": "trainer"}],
    }


def _tell(options: argparse.Namespace) -> int:
    config_path = options.home / "localcloud.json"
    config_path.write_text(json.dumps(cloud_config(options.version, options.trainer, options.include), indent=2))
    state_path = options.home / "localcloud"
    system = System(
        state_path=state_path,
        airflow_home_path=options.home / "airflow",
        port=options.port,
        dags_path=options.include.parent / "dags",
        plugins_path=None,
        environment_path=options.airflow,
        cloud_python=Path(sys.executable),
        cloud_config_path=config_path,
        import_path=os.environ.get("PYTHONPATH", ""),
        seed=("-m", "retraining_laptop.seed", "--state", str(state_path), "--data", str(options.data)),
        start_words=f"{NAME} --port ",
        say=say,
    )
    return tell(
        system,
        happen=lambda: _run(options, system),
        conclude=lambda finished: _lines(finished, system),
        look_at=lambda: _next_lines(options, system),
        ends_because="--once" if options.once else "",
    )


def _run(options: argparse.Namespace, system: System) -> Outcome:
    return run_dag(
        system.airflow.api(),
        f"retrain__{options.model}",
        options.as_of,
        project=os.environ["RETRAINING_PROJECT"],
        say=say,
        timeout_s=RUN_TIMEOUT_S,
        repeat=False,
    )


def _lines(finished: Outcome, system: System) -> list[str]:
    """Return what a person reads about a finished run."""
    report = f"report     {system.state_path / 'storage'}/{finished.run_uri.removeprefix('gs://')}/report.html"
    if finished.state != "success":
        logs = f"logs       {system.airflow.home_path / 'logs'}"
        again = f"again      {NAME} runs every task again, once the cause is mended"
        return [*failed_lines(finished.failures), *([report] if finished.run_uri else []), logs, again]
    documents = finished.documents
    lines = data_lines(documents) if "manifest" in documents else []
    lines += model_lines(documents) if "evaluation" in documents and "decision" in documents else []
    endpoint = documents.get("deployment", {}).get("endpoint_name")
    golden = documents.get("report", {}).get("golden")
    if endpoint and golden:
        instance = golden[0]["instance"]
        lines += answer_lines(instance, predict(endpoint, [instance]), "it answers {}")
    return [*lines, f"run        {finished.seconds:.1f} s", report]


def _next_lines(options: argparse.Namespace, system: System) -> list[str]:
    localcloud = Path(sys.executable).with_name("localcloud")
    exports = f"{shlex.quote(str(localcloud))} env --state {shlex.quote(str(system.state_path))}"
    return [
        f"pages      {system.airflow.url}/retraining/models: each model, its runs, and how they ended",
        f'next       in another terminal: eval "$({exports})", then retraining why {options.model}',
    ]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="retraining_laptop", description="Retrain a model for one night, here.")
    for name in ("model", "as-of", "version"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("data", "include", "home", "airflow", "trainer"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--once", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
