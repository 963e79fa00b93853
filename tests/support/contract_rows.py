"""What a document may not say: an example, the path of one value, a wrong one, and the words of the refusal.

Every row is refused by the pydantic model, by the JSON Schema and, where the trainer reads the kind, by its reader; the
two readers name the path and say the words.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any, NamedTuple

from tests.support.contracts import EXAMPLES

GONE = object()
"""Instead of a value: the key is taken out."""


class Row(NamedTuple):
    """One change of an example."""

    example: str
    path: str
    value: Any
    words: str

    @property
    def kind(self) -> str:
        """Return the document's kind."""
        return self.example.split("__")[0]

    @property
    def name(self) -> str:
        """Return what names the row in a test's id."""
        return f"{self.example}-{self.path}"

    def document(self) -> dict[str, Any]:
        """Return the example with the wrong value."""
        document: dict[str, Any] = copy.deepcopy(json.loads((EXAMPLES / f"{self.example}.json").read_text()))
        *steps, last = [
            int(text[1:-1]) if text[0] == "[" else text for text in re.findall(r"\[\d+\]|[^.\[\]]+", self.path)
        ]
        place: Any = document
        for step in steps:
            place = place[step]
        if self.value is GONE:
            del place[last]
        else:
            place[last] = self.value
        return document

    def sayings(self) -> list[str]:
        """Return what both readers say."""
        if self.words.startswith("unknown key"):
            return [self.words]
        parent, _, name = self.path.rpartition(".")
        if self.value is GONE:
            return [f"{parent or 'the document'} has no key {name!r}"]
        return [f"{self.path} ", self.words]


ROWS = [
    Row("approval__by_a_person", "approval.approved", "yes", "true or false"),
    Row("approval__by_a_person", "approval.approved", 1, "true or false"),
    Row("approval__asking", "task_try", "", "at least 1 characters"),
    Row("approval__asking", "question", "", "at least 1 characters"),
    Row("approval__asking", "generation", -1, "at least 0"),
    Row("attribution_baseline__two_features", "features", ["carrier"], "at least 2"),
    Row("attribution_baseline__two_features", "rows[0][1]", "much", "number"),
    Row("attribution_request__first", "asked.instances", 0, "at least 1"),
    Row("attribution_request__first", "requests[0].place", -1, "at least 0"),
    Row("attribution_request__first", "asked_by", "", "at least 1 characters"),
    Row("attributions__moved", "seconds", -1, "at least 0"),
    Row("attributions__failed", "because", "bad_luck", "one of: "),
    Row("checks__passed", "passed", "yes", "true or false"),
    Row("checks__quarantined", "findings[0].words", "", "at least 1 characters"),
    Row("checks__quarantined", "findings[0].severity", "fatal", 'one of: "block", "warn", "quarantine"'),
    Row("checks__quarantined", "findings[0].span", "the 16th", "date"),
    Row("decision__promote", "gates[0].gate", "luck", "one of: "),
    Row("decision__promote", "inputs.plan", "abc", "text like ^[0-9a-f]{64}$"),
    Row("decision__promote", "verdict", "maybe", 'one of: "promote", "reject", "record"'),
    Row("deployment__champion", "words", GONE, ""),
    Row("deployment__champion", "traffic.6112", 101, "at most 100"),
    Row("drift__carrier", "features[0].distance", "psi", "one of: "),
    Row("drift__carrier", "features[0].value", 1.5, "at most 1"),
    Row("evaluate_request__duel", "champion.as_of", GONE, ""),
    Row("evaluate_request__duel", "bootstrap.confidence", 1, "below 1"),
    Row("evaluate_request__duel", "bootstrap.samples", 99, "at least 100"),
    Row("evaluate_request__duel", "split", "train", 'one of: "test"'),
    Row("evaluate_request__duel", "features", [], "at least 1 entries"),
    Row("evaluate_request__duel", "threshold.rule", "f1", "one of: "),
    Row("evaluate_request__duel", "threshold.at", 1.5, "at most 1"),
    Row("evaluate_request__lite", "lite.forms[0]", "int4", 'one of: "float16", "int8"'),
    Row("evaluate_request__lite", "lite.forms", [], "at least 1 entries"),
    Row("evaluation__duel", "challenger.metrics.auc", 1.5, "at most 1"),
    Row("evaluation__duel", "challenger.metrics.log_loss", -0.1, "at least 0"),
    Row("evaluation__duel", "threshold.words", "", "at least 1 characters"),
    Row("evaluation__duel", "threshold.challenger.recall.low", -0.1, "at least 0"),
    Row("evaluation__duel", "rows", 0, "at least 1"),
    Row("evaluation__duel", "slice_differences[0].difference.deviation", -0.1, "at least 0"),
    Row("evaluation__duel", "evidence.effective", -1, "at least 0"),
    Row("evaluation__duel", "difference_evidence.units", "", "at least 1 characters"),
    Row("evaluation__duel", "slice_differences[1].evidence.needed", 0, "at least 1"),
    Row("evaluation__duel", "serving.single.batch", 0, "at least 1"),
    Row("evaluation__duel", "serving.latency.p50_ms", -1, "at least 0"),
    Row("evaluation__duel", "challenger.curves.roc.true_positive_rate[1]", 1.5, "at most 1"),
    Row("evaluation__duel", "challenger.curves.precision_recall.recall", [], "at least 1 entr"),
    Row("evaluation__duel", "champion.curves.calibration[0].rows", 0, "at least 1"),
    Row("evaluation__duel", "worst[0].loss", -0.1, "at least 0"),
    Row("evaluation__duel", "worst[0].values.carrier", "x" * 101, "at most 100 characters"),
    Row("evaluate_request__numbers", "show_rows", "yes", "true or false"),
    Row("evaluate_request__lite", "best.version_id", "", "at least 1 characters"),
    Row("evaluate_request__lite", "judge_best", "yes", "true or false"),
    Row("evaluation__classes", "label_counts[1]", -1, "at least 0"),
    Row("evaluation__classes", "best_evidence.needed", 0, "at least 1"),
    Row("evaluation__classes", "drawn_by", "hours", 'one of: "rows", "groups", "days"'),
    Row("evaluation__classes", "label_weights[0]", -0.5, "at least 0"),
    Row("evaluation__lite", "lite[0].bytes", -1, "at least 0"),
    Row("export_request__two_new_spans", "table", GONE, ""),
    Row("export_request__two_new_spans", "table", "flights", "text like "),
    Row("export_request__two_new_spans", "spans[0].span", "2013-9-1", ""),
    Row("export_request__two_new_spans", "partitions", 3, "unknown key 'partitions'"),
    Row("export_request__two_new_spans", "spans[0].parts[0].part", "training", 'one of: "train", "validation"'),
    Row("export_request__two_new_spans", "spans[0].parts[0].shards", 0, "at least 1"),
    Row("export_request__two_new_spans", "schema", [], "at least 1 entries"),
    Row("export_request__two_new_spans", "layout.numeric", ["a", "a"], ""),
    Row("export_request__two_new_spans", "layout.rows_per_record", True, "a whole number"),
    Row("golden__forty_rows", "rows", 0, "at least 1"),
    Row("ledger__retrain", "because", "mood", "one of: "),
    Row("ledger__retrain", "retrain_as_of", GONE, ""),
    Row("maintenance__one_span_went", "words", GONE, ""),
    Row("maintenance__one_span_went", "models[0].spans[0].outcome", "lost", "one of: "),
    Row("maintenance_plan__one_span_goes", "min_age_days", 0, "at least 1"),
    Row("maintenance_plan__one_span_goes", "models[0].kept_runs[0].because", "liked", "one of: "),
    Row("manifest__three_spans", "splits.test", GONE, ""),
    Row("manifest__three_spans", "splits.train.rows", -1, "at least 0"),
    Row("manifest__three_spans", "splits.train.files[0].crc32c", "AAAA", "text like "),
    Row("manifest__three_spans", "seconds", -1, "at least 0"),
    Row("model_card__approved", "data.rows.test", GONE, ""),
    Row("model_card__approved", "training.best_epoch", 0, "at least 1"),
    Row("model_overview__history", "runs[0].outcome", "won", "one of: "),
    Row("model_overview__history", "watches[0].key", "", "at least 1 characters"),
    Row("overview__two_models", "models[0].metric", "luck", "one of: "),
    Row("overview__two_models", "models[0].traffic[0].percent", 101, "at most 100"),
    Row("new_day__announced", "outcome", "perhaps", "one of: "),
    Row("new_day__announced", "tables[0].rows", -1, "at least 0"),
    Row("new_day__announced", "day", "soon", "date"),
    Row("plan__scheduled", "as_of", "2013-11-20T03:00:00", "a time needs its zone"),
    Row("plan__scheduled", "mode", "test", 'one of: "live", "backfill"'),
    Row("plan__scheduled", "run_key", "20131120T030000Z-4BE2344F8642", "text like "),
    Row("plan__scheduled", "spec.label", GONE, ""),
    Row("plan__scheduled", "trigger.cause", "", "at least 1 character"),
    Row("plan__scheduled", "extra", 1, "unknown key 'extra'"),
    Row("registration__challenger", "aliases", "challenger", "a list"),
    Row("registration__challenger", "version_id", 4, "text"),
    Row("score_request__challenger", "models", [], "at least 1"),
    Row("score_request__challenger", "digest_required", "yes", "true or false"),
    Row("score_request__challenger", "splits[0]", "train", "test"),
    Row("scores__skipped", "model_digest", "abc", ""),
    Row("scores__skipped", "request_digest", "abc", ""),
    Row("report__resumed", "request_digest", "4F" * 32, ""),
    Row("evaluation__duel", "request_digest", 4, ""),
    Row("report__first_attempt", "best_epoch", 0, "at least 1"),
    Row("report__first_attempt", "epochs_run", 1.5, "a whole number"),
    Row("report__first_attempt", "history.loss[0]", "0.5", "a number"),
    Row("report__first_attempt", "seconds.total", GONE, ""),
    Row("report__first_attempt", "golden[0].prediction", "high", "a number"),
    Row("report__images", "golden[0].instance.image", {"bytes": "iVBORw0KGgo="}, "unknown key 'bytes'"),
    Row("rollout__proven", "smoke_requests[0].end", GONE, ""),
    Row("pause__set", "until", "monday", "datetime"),
    Row("pause__ended", "until", GONE, ""),
    Row("spending__month", "month", "2013", ""),
    Row("spending__month", "spent.20131119t030000z-0a1b2c3d4e5f.usd", -1, "at least 0"),
    Row("spending__no_prices", "owner", "", "at least 1"),
    Row("walk_forward_plan__quarter", "dates", ["2013-09-04"], "at least 2"),
    Row("walk_forward_plan__quarter", "horizons", [], "at least 1"),
    Row("walk_forward__quarter", "cadences[1].every", 0, "at least 1"),
    Row("walk_forward__quarter", "metric", "luck", "auc"),
    Row("walk_forward__not_judged", "answer", "", "at least 1"),
    Row("notification__told", "event", "birthday", "approval"),
    Row("notification__told", "told[0]", "ml@example.com", "text like"),
    Row("notification__over", "attempt", 0, "at least 1"),
    Row("failure__final", "attempt", 0, "at least 1"),
    Row("failure__final", "failed_at", "soon", "datetime"),
    Row("failure__retried", "found", "x" * 2001, "2000"),
    Row("failure__retried", "retried", GONE, ""),
    Row("rollback__previous", "stopped", "no", "true or false"),
    Row("rollback__stopped", "trigger.kind", "asked", "one of: "),
    Row("multivariate__drifted", "auc", 1.2, "at most 1"),
    Row("multivariate__drifted", "table", "traffic", "text like "),
    Row("multivariate_request__two_features", "columns", [], "at least 1"),
    Row("multivariate_request__two_features", "columns[0].values", "image", "one of: "),
    Row("multivariate_request__two_features", "folds", 1, "at least 2"),
    Row("rollout__proven", "state", "half", "one of: "),
    Row("predictions__timed", "table", "predictions", "text like "),
    Row("scoring__day", "rows", 0, "at least 1"),
    Row("scoring_input__text_key", "key_type", "FLOAT", 'one of: "INTEGER", "STRING"'),
    Row("scoring_plan__query", "destination.day", "tomorrow", "date"),
    Row("scoring_plan__query", "version.run_key", GONE, ""),
    Row("signals__skew", "signals[0].kind", "mood", "one of: "),
    Row("signals__skew", "signals[0].because", "rain", "one of: "),
    Row("signals__skew", "signals[0].words", "", "at least 1 characters"),
    Row("snapshot__three_new_spans", "spans[0].fingerprint", "ab", "text like ^[0-9a-f]{32}$"),
    Row("snapshot__three_new_spans", "schema[0].mode", "OPTIONAL", "one of: "),
    Row("snapshot__three_new_spans", "spans[0].parts[0].shards", 0, "at least 1"),
    Row("span__one_day", "files", [], "at least 1 entries"),
    Row("span__one_day", "files[0].sha256", "12", "text like ^[0-9a-f]{64}$"),
    Row("span__one_day", "files[0].file_name", "train.txt", "text like "),
    Row("statistics__day_left_out", "days[0].rows", 0, "at least 1"),
    Row("statistics__two_features", "splits.train.features.distance.kind", "colour", 'one of: "numeric", '),
    Row("statistics__two_features", "splits.train.features.distance.kind", GONE, ""),
    Row("statistics__two_features", "splits.test", GONE, ""),
    Row("statistics__two_features", "splits.train.features.distance.quantiles", [0.0] * 22, "at most 21 entries"),
    Row("statistics__two_features", "splits.train.weight.mean", -1.0, "at least 0"),
    Row("statistics__classes", "splits.train.label.outside.texts[0].rows", 0, "at least 1"),
    Row("statistics__images", "splits.test.label.outside.rows", 0, "at least 1"),
    Row("timings__run", "tasks[0].seconds", -1.0, "at least 0"),
    Row("timings__run", "tasks[0].cost", 1, "unknown key 'cost'"),
    Row("train_request__defaults", "training.epochs", 0, "at least 1"),
    Row("train_request__wide_deep", "digest_required", 1, "true or false"),
    Row("train_request__defaults", "training.epochs", "3", "a whole number"),
    Row("train_request__defaults", "training.warmup_fraction", 0.6, "at most 0.5"),
    Row("train_request__defaults", "training.clip_norm", 0, "above 0"),
    Row("train_request__defaults", "label.kind", "ranking", 'one of: "binary", "multiclass", "regression"'),
    Row("evaluation__numbers", "challenger.answers.residuals.counts[0]", -1, "at least 0"),
    Row("evaluation__numbers", "challenger.answers.quantiles", [1.0], "at least 21 entries"),
    Row("train_request__quantiles", "label.quantiles[0]", 0, "above 0"),
    Row("train_request__quantiles", "label.loss", "mape", "one of: "),
    Row("train_request__defaults", "label.quantiles", [0.5], "unknown key 'quantiles'"),
    Row("train_request__classes", "label.classes", GONE, ""),
    Row("train_request__classes", "features[0].parts", [], "at least 1 entries"),
    Row("train_request__classes", "features[0].parts[0]", "year", "one of: "),
    Row("train_request__classes", "features[1].hash_buckets", 1, "at least 2"),
    Row("train_request__classes", "features[2].delimiter", "", "at least 1 characters"),
    Row("train_request__defaults", "model_uri", "models/x", "text like "),
    Row("train_request__defaults", "seed", 2**31, "at most 2147483647"),
    Row("train_request__defaults", "features[0].length", 3, "unknown key 'length'"),
    Row("train_request__wide_deep", "weight", "", "at least 1 characters"),
    Row("train_request__wide_deep", "training.callbacks.reduce_lr.factor", 1, "below 1"),
    Row("train_request__wide_deep", "training.callbacks.reduce_lr.patience", GONE, ""),
    Row("train_request__sequences", "features[0].length", GONE, ""),
    Row("tuning__study", "trials[0].phase", "luck", "one of: "),
    Row("tuning_request__search_by_age", "because", "mood", "one of: "),
]
