"""`python -m trainer.tools.tfjs gs://BUCKET/MODEL/runs/KEY`, or `make tfjs`: a run's model for browsers and Node.

Comes in: a run whose model was stored for conversion (`training.export_lite`). Goes out: in its folder `training/tfjs`,
`model.json` and weights as `tf.loadGraphModel` reads them, and the ids of its categories, `vocabulary.json`. The
converter has an environment of its own, `requirements-tfjs.txt`, in which this program runs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.contract.documents import Report
from trainer.contract.json_text import read_json
from trainer.contract.reading import read_document
from trainer.errors import DataError, RequestError, TrainerError
from trainer.saved_model.model import LITE, VOCABULARY_PATH, save_lite_graph
from trainer.storage import Storage, join_uri

MODEL_NAME = "model.json"
_ANOTHER = "another architecture (docs/models.md#tfjs has those that can be converted)"


def main(run_uri: str) -> int:
    """Convert, and print the folder's address; gives the exit code."""
    try:
        print(convert_run(run_uri.rstrip("/"), Storage()))
    except TrainerError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def convert_run(run_uri: str, storage: Storage) -> str:
    """Convert the model of a run; return the address of the folder with the result.

    Raises:
        RequestError: This is not the converter's environment, or the run has no model that can be converted.
        StorageError: Storage did not answer.
    """
    model_uri = read_document(Report, join_uri(run_uri, "report.json"), storage).model_uri
    folder_uri = join_uri(run_uri, "training", "tfjs")
    with tempfile.TemporaryDirectory(prefix="trainer-tfjs-") as path:
        model_path, graph_path, out_path = (Path(path) / name for name in ("model", "graph", "tfjs"))
        storage.download_folder(model_uri, model_path)
        save_lite_graph(model_path, graph_path, model_uri)
        _convert(graph_path, out_path, model_uri)
        graph: Any = read_json((out_path / MODEL_NAME).read_text())
        require_answers(graph, model_uri)
        if (model_path / VOCABULARY_PATH).exists():
            shutil.copy(model_path / VOCABULARY_PATH, out_path)
        storage.upload_folder(out_path, folder_uri)
    return folder_uri


def _convert(graph_path: Path, out_path: Path, model_uri: str) -> None:
    try:
        from tensorflowjs.converters.tf_saved_model_conversion_v2 import convert_tf_saved_model
    except ImportError as error:
        raise RequestError(
            "tensorflowjs",
            f"cannot be imported: {error}",
            "the environment of trainer/requirements-tfjs.txt",
            "Use make tfjs",
        ) from error
    try:
        convert_tf_saved_model(
            str(graph_path),
            str(out_path),
            signature_def=LITE,
            control_flow_v2=True,  # loops stay loops; without it those of recurrent layers are not converted
            use_structured_outputs_names=True,
        )
    except ValueError as error:
        raise DataError(model_uri, f"cannot be converted: {' '.join(str(error).split())}", _ANOTHER) from error


def require_answers(model: dict[str, Any], model_uri: str) -> None:
    """Check for what TF.js computes wrong without an error: normalisation by the batch at hand, as that of layers.

    It takes the stored mean and variance, of which there are none then, and answers NaN.

    Raises:
        DataError: There is some.
    """
    for node in _nodes(model["modelTopology"]):
        if node["op"].startswith("FusedBatchNorm") and node.get("attr", {}).get("is_training", {}).get("b", True):
            raise DataError(
                model_uri, f"{node['name']} normalises by the batch at hand, for which TF.js answers NaN", _ANOTHER
            )


def _nodes(topology: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from topology["node"]
    for function in topology.get("library", {}).get("function", []):
        yield from function.get("nodeDef", [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
