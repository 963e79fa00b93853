"""An example of each key of a model's YAML, and what must stand beside it in the small model's file."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retraining.core.signal_kinds import SIGNAL_KINDS
from retraining.core.spec.model import ModelSpec
from tests.support.consequences import CHANGE
from tests.support.small_model import spec_values


@dataclass(frozen=True, kw_only=True)
class Example:
    """A value of a key.

    Attributes:
        value: As the file has it.
        beside: What else the file needs, by key; `[]` is the last entry of a list, `[+]` a further one.
        along: What changes with it, for a file that has the one without the other is refused.
        refused: Words of the refusal where no file can have the key.
        read_by: The operator's file that alone reads it, below `plugins/retraining`: no document follows from it.
    """

    value: Any
    beside: Mapping[str, Any] = field(default_factory=dict)
    along: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""
    read_by: str = ""

    def specs(self, key: str) -> tuple[ModelSpec, ModelSpec]:
        """Return the spec before and with the example."""
        values: dict[str, Any] = copy.deepcopy(spec_values())
        for place, value in self.beside.items():
            put(values, place, value)
        before = ModelSpec.model_validate(values)
        for place, value in {key: self.value, **self.along}.items():
            put(values, place, value)
        return before, ModelSpec.model_validate(values)


def put(values: dict[str, Any], key: str, value: object) -> None:
    """Set a key; None removes it."""
    target: Any = values
    *sections, last = key.split(".")
    for part in sections:
        name = part.removesuffix("[]")
        target = target.setdefault(name, {}) if name == part else target[name][-1]
    if last.endswith("[+]"):
        target.setdefault(last.removesuffix("[+]"), []).append(copy.deepcopy(value))
    elif value is None:
        target.pop(last, None)
    else:
        target[last] = copy.deepcopy(value)


def of(value: object, *beside: Mapping[str, Any], **more: Any) -> Example:
    """Return an example beside other keys."""
    return Example(value=value, beside={key: each for part in beside for key, each in part.items()}, **more)


IMAGE = "us-docker.pkg.dev/p/r/own:1"
PHOTO: dict[str, Any] = {
    "features[+]": {"name": "photo", "kind": "image", "height": 4, "width": 4},
    "training.model": "cnn",
}
BAG: dict[str, Any] = {"features[+]": {"name": "tags", "kind": "bag", "of": "values"}}
STOPS: dict[str, Any] = {
    "features[+]": {"name": "stops", "kind": "sequence", "of": "categorical", "length": 4},
    "training.model": "lstm",
}
FILES: dict[str, Any] = {
    "data.files": {
        "uris": "gs://my-source/rows/*.csv",
        "format": "csv",
        "columns": [{"name": name, "type": "STRING"} for name in ("id", "at", "carrier", "distance", "late", "spare")],
    }
}
NUMBER: dict[str, Any] = {
    "label": {"name": "delay", "kind": "regression"},
    "evaluation": {"metric": "mae", "max_value": 9.0, "promote": {"max_slice_loss": 1.0}},
    "data.checks.label_rate": None,
}
AUXILIARY: dict[str, Any] = {"auxiliary_labels[+]": {"name": "delay", "kind": "regression"}}
REVIEWS: dict[str, Any] = {
    "reviews[+]": {"test": "privacy", "by": "Ada", "day": "2013-11-01", "where": "docs/privacy.md"}
}
CROSS: dict[str, Any] = {
    "features[+]": {"name": "other", "kind": "categorical"},
    "crosses[+]": {"columns": ["other", "carrier"]},
}
CLASSES: dict[str, Any] = {"label": {"name": "late", "kind": "multiclass", "classes": 4}}
COSTS: dict[str, Any] = {"label.costs": {"false_positive": 1, "false_negative": 10}}
CLASSES_BESIDE: dict[str, Any] = {"auxiliary_labels[+]": {"name": "delay", "kind": "multiclass", "classes": 3}}
COSTS_BESIDE: dict[str, Any] = {
    "auxiliary_labels[+]": {"name": "delay", "kind": "binary", "costs": {"false_positive": 1, "false_negative": 10}}
}
OWN: dict[str, Any] = {"training.runtime.image": IMAGE}
MACHINES: dict[str, Any] = {
    **OWN,
    "training.cluster": {
        "tier": "CUSTOM",
        "chief": {"machine": "n1-standard-8"},
        "workers": {"machine": "n1-standard-8", "count": 2},
        "parameter_servers": {"machine": "n1-standard-4", "count": 1},
        "evaluator": {"machine": "n1-standard-4"},
    },
}
T4 = {"type": "NVIDIA_TESLA_T4"}
V100 = "NVIDIA_TESLA_V100"
NO_TPU = "a TPU is the chief's: name it there"
NO_GPU = "parameter_servers only hold variables: remove their accelerator"
WITH_GPUS: dict[str, Any] = {
    **OWN,
    "training.cluster": {
        "tier": "CUSTOM",
        "chief": {"machine": "n1-standard-8", "accelerator": T4},
        "workers": {"machine": "n1-standard-8", "accelerator": T4, "count": 2},
        "evaluator": {"machine": "n1-standard-4", "accelerator": T4},
    },
}
TPU: dict[str, Any] = {
    **OWN,
    "training.cluster": {"tier": "CUSTOM", "chief": {"machine": "ct5lp-hightpu-4t", "tpu_topology": "2x2"}},
}
RATE = {"name": "learning_rate", "kind": "double", "min": 0.001, "max": 0.1}
UNITS = {"name": "hidden_units", "kind": "categorical", "values": ["small", "large"]}
TUNING: dict[str, Any] = {
    "training.hyperparameters.hidden_units": "small",
    "training.hyperparameters.dropout": 0.1,
    "tuning": {"max_trials": 8, "recall": 2, "parallel_trials": 2, "parameters": [UNITS, RATE]},
}
WHEN: dict[str, Any] = {**TUNING, "tuning.parameters[].when": {"parameter": "hidden_units", "values": ["small"]}}
TWO_PARENTS: dict[str, Any] = {
    **TUNING,
    "training.hyperparameters.layers": "small",
    "tuning.parameters": [
        UNITS,
        {**UNITS, "name": "layers"},
        {**RATE, "when": {"parameter": "hidden_units", "values": ["small"]}},
    ],
}
NEW_DAY: dict[str, Any] = {"triggers.new_day": {"tables": [{"name": "source.rows", "time": "at"}]}}
LINES: dict[str, Any] = {"scoring": {"files": "gs://my-source/a/*.jsonl", "destination": "gs://my-scores/late"}}
ATTRIBUTIONS = "operators/monitoring/attributions.py"
QUIET: dict[str, Any] = {"monitoring.policy.quiet_hours": {"start": "22:00", "end": "06:00"}}
SCORING: dict[str, Any] = {"scoring": {"query": "late/tomorrow.sql", "destination": "retraining.scores"}}
CANARY: dict[str, Any] = {"deployment.canary": {}}
SHADOW: dict[str, Any] = {"deployment.staging": True, "deployment.shadow": {}}
EXPLANATIONS: dict[str, Any] = {"deployment.explanations": {}}
CONTAINER: dict[str, Any] = {
    "deployment.container": {"image": IMAGE, "predict_route": "/predict", "health_route": "/health"}
}
WHEEL = "gs://my-wheels/own_layers-1.0-py3-none-any.whl"
PACKAGE: dict[str, Any] = {"training.packages[+]": {"requirement": "humanize==4.9.0", "sha256": ["a" * 64]}}
FLIPPED: dict[str, Any] = {**PHOTO, "training.augmentation": {"flip": "both", "zoom": 0.1}}

ASSERTION: dict[str, Any] = {"data.assertions[+]": {"name": "no_late", "query": "late/no_late.sql"}}
GATE: dict[str, Any] = {"evaluation.gates[+]": {"name": "no_loss", "function": "late.py:no_loss"}}
NO_DAYS: dict[str, Any] = dict.fromkeys(("data.event_time", "data.window_days", "data.test_days"))
HASH: dict[str, Any] = {"data.split": "hash", **NO_DAYS}
EXAMPLES: Mapping[str, Any] = {
    "name": "later",
    "description": "Will it be much later?",
    "owner": "ops",
    "labels": of({"cost_center": "4711"}, read_by="operators/airflow/task_defaults.py"),
    "priority": of(8, read_by="operators/jobs/places.py"),
    "licence": "Apache-2.0",
    "tags": ["nightly"],
    "schedule": "0 5 * * *",
    "triggers.assets[].name": of("rows", {"triggers.assets[+]": {"uri": "bigquery://p/source/rows"}}),
    "triggers.assets[].uri": of("bigquery://p/source/rows", {"triggers.assets[+]": {"name": "rows"}}),
    "triggers.new_day.tables[].name": of("source.others", NEW_DAY),
    "triggers.new_day.tables[].time": of("sent_at", NEW_DAY),
    "triggers.new_day.after_hours": of(3, NEW_DAY, read_by="operators/monitoring/new_day.py"),
    "triggers.new_day.min_share": of(0.9, NEW_DAY),
    "triggers.new_day.max_gb": of(5, NEW_DAY, read_by="operators/monitoring/new_day.py"),
    "budget_usd": 0.01,
    "machine_pool": Example(value="nightly", read_by="core/jobs/requests.py"),
    "jobs": of("chained", read_by="core/catalog/machines.py"),
    "service_account": "late@my-project.iam.gserviceaccount.com",
    "data.query": "late/others.sql",
    "data.files.uris": of(["gs://my-source/a.csv", "gs://my-source/b.csv"], FILES),
    "data.files.format": of("json", FILES),
    "data.files.columns[].name": of("other", FILES),
    "data.files.columns[].type": of("INT64", FILES),
    "data.files.delimiter": of(";", FILES),
    "data.files.null_text": of("NA", FILES),
    "data.golden_query": "late/frozen.sql",
    "data.key": "tailnum",
    "data.weight": "weight",
    "data.split": of("hash", along=NO_DAYS),
    "data.event_time": "started",
    "data.days": ["2013-01-01", "2013-12-31"],
    "data.time_travel": True,
    "data.label_lag_days": 3,
    "data.window_days": 30,
    "data.test_days": 3,
    "data.test_percent": of(20, HASH),
    "data.validation_percent": 20,
    "data.validation_by": "days",
    "data.sample_percent": 5,
    "data.rows_per_shard": 5000,
    "data.shard_mb": 16,
    "data.compression": "NONE",
    "data.layout.numeric": "vector",
    "data.layout.rows_per_record": 64,
    "data.schema_version": 2,
    "data.export.replicas": 4,
    "data.export.machine": "n1-standard-8",
    "data.export.spot": True,
    "data.keep_table_days": 30,
    "data.checks.min_rows": 5000,
    "data.checks.max_null_fraction": {"distance": 0.9},
    "data.checks.label_rate": [0.5, 0.9],
    "data.checks.max_label_shift": of(0.2, NUMBER),
    "data.checks.ranges": {"distance": [0, 10]},
    "data.checks.max_age_hours": 1,
    "data.checks.max_volume_change": 9,
    "data.checks.volume_runs": of(2, read_by="operators/data/earlier_runs.py"),
    "data.checks.on_new_category": "block",
    "data.checks.on_vanished_category": "block",
    "data.checks.severity": of({"min_rows": "warn"}, {"data.checks.min_rows": 5000}),
    "data.assertions[].name": of("no_later", ASSERTION),
    "data.assertions[].query": of("late/no_later.sql", ASSERTION),
    "data.assertions[].severity": of("warn", ASSERTION),
    "evaluation.gates[].name": of("no_fall", GATE),
    "evaluation.gates[].function": of("late.py:no_fall", GATE),
    "evaluation.gates[].severity": of("warn", GATE),
    "features[].name": of("delay", {"data.checks.max_null_fraction": None}),
    "features[].kind": "categorical",
    "features[].normalize": False,
    "features[].missing": "zero",
    "features[].transform": "log1p",
    "features[].low": of(0, {"features[].transform": "clip"}),
    "features[].high": of(100, {"features[].transform": "clip"}),
    "features[].buckets": of(5, {"features[].transform": "buckets"}),
    "features[].boundaries": of([0, 100], {"features[].transform": "buckets"}),
    "features[].max_vocabulary": of(20, {"features[+]": {"name": "other", "kind": "categorical"}}),
    "features[].hash_buckets": of(64, {"features[+]": {"name": "other", "kind": "categorical"}}),
    "crosses[].columns": of(["carrier", "other"], CROSS),
    "crosses[].buckets": of(50, CROSS),
    "crosses[].embedding_dim": of(4, CROSS),
    "features[].embedding_dim": of(8, {"features[+]": {"name": "other", "kind": "categorical"}}),
    "features[].height": of(8, PHOTO),
    "features[].width": of(8, PHOTO),
    "features[].channels": of(1, PHOTO),
    "features[].encoding": of("png", PHOTO),
    "features[].objects": of("gs://my-photos/", PHOTO),
    "features[].of": of("numeric", STOPS),
    "features[].length": of(8, STOPS),
    "features[].keep": of("first", STOPS),
    "features[].delimiter": of(";", BAG),
    "features[].sizes": of([1, 2], BAG, {"features[].of": "words"}),
    "features[].parts": of(
        ["hour", "days"], {"features[+]": {"name": "asked_at", "kind": "time", "parts": ["weekday"]}}
    ),
    "features[].names": of("mean_*", {"features[+]": {"names": "dela*", "kind": "numeric"}}),
    "label.name": "other",
    "label.kind": of("regression", along={"evaluation": NUMBER["evaluation"], "data.checks.label_rate": None}),
    "label.classes": of(3, CLASSES),
    "label.costs.false_positive": of(2, COSTS),
    "label.costs.false_negative": of(20, COSTS),
    "label.loss": of("huber", NUMBER),
    "label.transform": of("log1p", NUMBER),
    "label.quantiles": of([0.1, 0.5, 0.9], NUMBER, {"label.loss": "quantile", "label.quantiles": [0.5, 0.9]}),
    "label.min": of(0, NUMBER),
    "label.max": of(100, NUMBER),
    "auxiliary_labels[].name": of("before", AUXILIARY),
    "auxiliary_labels[].kind": of("binary", AUXILIARY),
    "auxiliary_labels[].weight": of(0.3, AUXILIARY),
    "auxiliary_labels[].classes": of(5, CLASSES_BESIDE),
    "auxiliary_labels[].costs.false_positive": of(2, COSTS_BESIDE),
    "auxiliary_labels[].costs.false_negative": of(20, COSTS_BESIDE),
    "auxiliary_labels[].loss": of("huber", AUXILIARY),
    "auxiliary_labels[].transform": of("log1p", AUXILIARY),
    "auxiliary_labels[].quantiles": of(
        [0.1, 0.5, 0.9], AUXILIARY, {"auxiliary_labels[].loss": "quantile", "auxiliary_labels[].quantiles": [0.5, 0.9]}
    ),
    "auxiliary_labels[].min": of(0, AUXILIARY),
    "auxiliary_labels[].max": of(100, AUXILIARY),
    "training.model": "dense",
    "training.epochs": 20,
    "training.batch_size": 1024,
    "training.hyperparameters": {"learning_rate": 0.1},
    "training.early_stopping_patience": 0,
    "training.ensemble": 3,
    "training.input": "csv",
    "training.reader": of("tensorflow_io", OWN, {"training.input": "bigquery"}),
    "training.seed": 7,
    "training.initial": of("champion", read_by="operators/jobs/requests.py"),
    "training.strategy": "one_device",
    "training.loop": "custom",
    "training.precision": "mixed_bfloat16",
    "training.sharding": "files",
    "training.scale_learning_rate": False,
    "training.warmup_fraction": 0.1,
    "training.clip_norm": 1.0,
    "training.accumulate_steps": of(4, {"training.loop": "custom"}),
    "training.checkpoint.every_steps": 100,
    "training.checkpoint.every_seconds": 60,
    "training.callbacks.reduce_lr.patience": of(2, {"training.callbacks.reduce_lr": {"patience": 1}}),
    "training.callbacks.reduce_lr.factor": of(0.1, {"training.callbacks.reduce_lr": {"patience": 1}}),
    "training.callbacks.tensorboard.histograms": True,
    "training.callbacks.tensorboard.profile": True,
    "training.augmentation.flip": of("horizontal", FLIPPED),
    "training.augmentation.rotate": of(0.05, FLIPPED),
    "training.augmentation.zoom": of(0.2, FLIPPED),
    "training.augmentation.crop": of(0.1, FLIPPED),
    "training.augmentation.brightness": of(0.1, FLIPPED),
    "training.augmentation.contrast": of(0.1, FLIPPED),
    "training.augmentation.noise": of(0.02, FLIPPED),
    "training.augmentation.strength": of(0.5, FLIPPED),
    "training.augmentation.contact_sheet": of(False, FLIPPED),
    "training.export_lite": ["float16"],
    "training.packages[].wheel": of(
        WHEEL, {"training.packages[+]": {"wheel": WHEEL.replace("1.0", "0.9"), "sha256": ["a" * 64]}}
    ),
    "training.packages[].requirement": of("humanize==4.10.0", PACKAGE),
    "training.packages[].sha256": of(["b" * 64], PACKAGE),
    "training.packages[].imports": of("humanize", PACKAGE),
    "training.cluster.tier": "STANDARD_1",
    "training.cluster.chief.machine": of("n1-standard-16", MACHINES),
    "training.cluster.chief.accelerator.type": of(V100, WITH_GPUS, {"training.cluster.workers": None}),
    "training.cluster.chief.accelerator.count": of(2, WITH_GPUS, {"training.cluster.workers": None}),
    "training.cluster.chief.tpu_topology": of("2x4", TPU),
    "training.cluster.workers.machine": of("n1-standard-16", MACHINES),
    "training.cluster.workers.accelerator.type": of(
        V100, WITH_GPUS, along={"training.cluster.chief.accelerator.type": V100}
    ),
    "training.cluster.workers.accelerator.count": of(
        2, WITH_GPUS, along={"training.cluster.chief.accelerator.count": 2}
    ),
    "training.cluster.workers.tpu_topology": of(
        "2x2", MACHINES, along={"training.cluster.workers.machine": "ct5lp-hightpu-4t"}, refused=NO_TPU
    ),
    "training.cluster.workers.count": of(4, MACHINES),
    "training.cluster.parameter_servers.machine": of("n1-standard-8", MACHINES),
    "training.cluster.parameter_servers.accelerator.type": of("NVIDIA_TESLA_T4", MACHINES, refused=NO_GPU),
    "training.cluster.parameter_servers.accelerator.count": of(
        2, MACHINES, along={"training.cluster.parameter_servers.accelerator.type": "NVIDIA_TESLA_T4"}, refused=NO_GPU
    ),
    "training.cluster.parameter_servers.tpu_topology": of(
        "2x2", MACHINES, along={"training.cluster.parameter_servers.machine": "ct5lp-hightpu-4t"}, refused=NO_TPU
    ),
    "training.cluster.parameter_servers.count": of(3, MACHINES),
    "training.cluster.evaluator.machine": of("n1-standard-8", MACHINES),
    "training.cluster.evaluator.accelerator.type": of(V100, WITH_GPUS),
    "training.cluster.evaluator.accelerator.count": of(2, WITH_GPUS),
    "training.cluster.evaluator.tpu_topology": of(
        "2x2", MACHINES, along={"training.cluster.evaluator.machine": "ct5lp-hightpu-4t"}, refused=NO_TPU
    ),
    "training.cluster.spot": True,
    "training.cluster.flex_start_hours": of(6.0, WITH_GPUS),
    "training.cluster.reservation": of("projects/p/zones/us-central1-a/reservations/night"),
    "training.cluster.disk_gb": 500,
    "training.cluster.disk_type": "pd-standard",
    "training.cluster.timeout_hours": 12,
    "training.runtime.framework": "2.15",
    "training.runtime.image": IMAGE,
    "training.runtime.models": of("own", OWN, CONTAINER),
    "tuning.search": of("always", TUNING),
    "tuning.every_days": of(30, TUNING),
    "tuning.max_trials": of(20, TUNING),
    "tuning.parallel_trials": of(4, TUNING),
    "tuning.recall": of(1, TUNING),
    "tuning.max_failed_trials": of(5, TUNING),
    "tuning.metric": of("val_accuracy", TUNING),
    "tuning.goal": of("minimize", TUNING, OWN, {"tuning.metric": "regret", "tuning.goal": "maximize"}),
    "tuning.algorithm": of("random", TUNING),
    "tuning.early_stopping": of("none", TUNING),
    "tuning.spot": of(False, TUNING),
    "tuning.parameters[].name": of("dropout", TUNING),
    "tuning.parameters[].kind": of("integer", TUNING, {"tuning.parameters[].min": 1, "tuning.parameters[].max": 3}),
    "tuning.parameters[].min": of(0.01, TUNING),
    "tuning.parameters[].max": of(0.5, TUNING),
    "tuning.parameters[].scale": of("log", TUNING),
    "tuning.parameters[].values": of(
        [0.01, 0.1], TUNING, {"tuning.parameters[+]": {"name": "dropout", "kind": "discrete", "values": [0.1, 0.2]}}
    ),
    "tuning.parameters[].when.parameter": of("layers", TWO_PARENTS),
    "tuning.parameters[].when.values": of(["large"], WHEN),
    "evaluation.metric": "accuracy",
    "evaluation.min_value": 0.7,
    "evaluation.max_value": of(1, NUMBER),
    "evaluation.threshold": "recall>=0.9",
    "evaluation.threshold.false_positive": of(3, {"evaluation.threshold": {"false_positive": 1, "false_negative": 5}}),
    "evaluation.threshold.false_negative": of(9, {"evaluation.threshold": {"false_positive": 1, "false_negative": 5}}),
    "evaluation.slices": ["carrier", ["carrier", "distance"]],
    "evaluation.group": "tailnum",
    "evaluation.baselines": of({"last_week": "before"}, NUMBER),
    "evaluation.by_day": False,
    "evaluation.promote.max_loss_from_best": of(0.02, read_by="core/promotion/best.py"),
    "evaluation.promote.below_reference": of(True, read_by="core/promotion/reference.py"),
    "evaluation.reference": False,
    "evaluation.importance.rows": 500,
    "evaluation.importance.repeats": 5,
    "evaluation.importance.max_seconds": 30,
    "evaluation.promote.min_gain": 0.1,
    "evaluation.promote.confidence": 0.9,
    "evaluation.promote.max_slice_loss": of(0.5, {"evaluation.promote.min_slice_examples": 10}),
    "evaluation.promote.min_examples": 4000,
    "evaluation.promote.min_slice_examples": 50,
    "deployment.endpoint": False,
    "deployment.machine": "n1-standard-4",
    "deployment.accelerator.type": of("NVIDIA_L4", CONTAINER, {"deployment.accelerator": T4}),
    "deployment.accelerator.count": of(2, CONTAINER, {"deployment.accelerator": T4}),
    "deployment.shared_machines": "small-models",
    "deployment.dedicated_endpoint": True,
    "deployment.request_log_sampling": 0.5,
    "deployment.key_input": True,
    "deployment.min_replicas": of(2, {"deployment.max_replicas": 4}),
    "deployment.max_replicas": 4,
    "deployment.autoscale_cpu_percent": of(80, {"deployment.max_replicas": 4}),
    "deployment.shadow.hours": of(6, SHADOW),
    "deployment.shadow.max_requests": of(200, SHADOW),
    "deployment.shadow.max_minutes": of(5, SHADOW),
    "deployment.canary.percent": of([5, 100], CANARY),
    "deployment.canary.bake_minutes": of(20, CANARY),
    "deployment.canary.max_error_increase": of(0.05, CANARY),
    "deployment.canary.max_latency_ratio": of(1.5, CANARY),
    "deployment.canary.max_answer_shift": of(0.01, CANARY),
    "deployment.canary.min_requests": of(500, CANARY),
    "deployment.canary.on_low_traffic": of("continue", CANARY, read_by="core/promotion/ramp_gates.py"),
    "deployment.staging": True,
    "deployment.keep_previous_hours": 48,
    "deployment.container.image": of(f"{IMAGE}2", CONTAINER),
    "deployment.container.port": of(9000, CONTAINER),
    "deployment.container.predict_route": of("/answer", CONTAINER),
    "deployment.container.health_route": of("/alive", CONTAINER),
    "deployment.container.command": of(["serve"], CONTAINER),
    "deployment.container.args": of(["--fast"], CONTAINER),
    "deployment.container.environment": of({"THREADS": "2"}, CONTAINER),
    "deployment.explanations.paths": of(25, EXPLANATIONS),
    "deployment.explanations.baselines": of({"distance": 7}, EXPLANATIONS),
    "deployment.approval": "always",
    "deployment.accept_signature": CHANGE,
    "monitoring.schedule": "30 * * * *",
    "monitoring.window_hours": 12,
    "monitoring.min_requests": 1000,
    "monitoring.max_gigabytes": of(1, read_by="operators/monitoring/measurement.py"),
    "monitoring.drift.threshold": 0.05,
    "monitoring.drift.features": {"carrier": 1},
    "monitoring.drift.reference_hours": 24,
    "monitoring.serving.max_error_rate": 0.1,
    "monitoring.serving.max_latency_ms": 50,
    "monitoring.serving.max_latency_ratio": 1.5,
    "monitoring.max_source_age_hours": 48,
    "monitoring.static_sources": of(["source.rows"], {"monitoring.max_source_age_hours": 48}),
    "monitoring.performance.max_drop": 0.1,
    "monitoring.performance.window_days": of(14, read_by="operators/monitoring/measurement.py"),
    "monitoring.performance.labels_query": of("late/labels.sql", read_by="operators/monitoring/measurement.py"),
    "monitoring.performance.request_keys": of("serving.keys", read_by="operators/monitoring/measurement.py"),
    "monitoring.multivariate.every_days": 7,
    "monitoring.multivariate.min_auc": 0.99,
    "monitoring.multivariate.max_rows": 1000,
    "monitoring.attributions.every_hours": of(12, {"monitoring.attributions": {}}, read_by=ATTRIBUTIONS),
    "monitoring.attributions.requests": of(50, {"monitoring.attributions": {}}, read_by=ATTRIBUTIONS),
    "monitoring.attributions.max_predictions": of(1000, {"monitoring.attributions": {}}, read_by=ATTRIBUTIONS),
    "monitoring.attributions.max_shift": of(0.05, {"monitoring.attributions": {}}),
    "monitoring.max_age_days": 3,
    "monitoring.cooldown_hours": 72,
    "monitoring.policy.windows.exceeded": 1,
    "monitoring.policy.windows.of": 5,
    **{f"monitoring.policy.actions.{kind}": "none" for kind in SIGNAL_KINDS},
    "monitoring.policy.max_retrainings_per_week": 1,
    "monitoring.policy.quiet_hours.start": of(
        "20:00", {"monitoring.policy.quiet_hours": {"start": "22:00", "end": "06:00"}}
    ),
    "monitoring.policy.quiet_hours.end": of(
        "07:00", {"monitoring.policy.quiet_hours": {"start": "22:00", "end": "06:00"}}
    ),
    "monitoring.policy.rollback_within_hours": 48,
    "monitoring.policy.rollback_pause_days": of(7, read_by="operators/monitoring/rollback.py"),
    "scoring.schedule": of("0 6 * * *", SCORING),
    "scoring.query": of("late/others.sql", SCORING),
    "scoring.table": of("source.tomorrow", {"scoring": {"table": "source.rows", "destination": "retraining.scores"}}),
    "scoring.files": of(
        "gs://my-source/b/*.jsonl",
        LINES,
    ),
    "scoring.destination": of("retraining.others", SCORING),
    "scoring.allow_sources": of(["source"], SCORING),
    "scoring.allow_destinations": of(["scores"], SCORING),
    "scoring.partition": of(False, SCORING),
    "scoring.version": of("previous", SCORING),
    "scoring.machine": of("n1-standard-8", SCORING),
    "scoring.replicas": of(4, SCORING),
    "scoring.batch_size": of(16, SCORING),
    "scoring.timeout_hours": of(12, SCORING),
    "report.show_rows": True,
    "notify.owners": ["ops@example.com"],
    "notify.channels": ["retraining_slack"],
    "notify.notifiers": ["pager"],
    "reviews[].test": of("inclusion", REVIEWS),
    "reviews[].by": of("Grace", REVIEWS),
    "reviews[].day": of("2013-11-02", REVIEWS),
    "reviews[].where": of("https://example.com/2", REVIEWS),
    "notify.events": of(["failure"], read_by="operators/airflow/notification.py"),
}
"""By key. A section has none of its own: its keys have."""
