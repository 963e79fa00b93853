"""The evaluation job: challenger and champion are compared on the same examples; nothing is decided here.

Comes in: an evaluate request, a source of examples, and stored models, or the scores that a model's own trainer left.
Goes out: scores per example of the models that are asked here, and `evaluation.json` with metrics, slices, the interval
of the difference, and the digests of the shards that both were judged on. Keys, labels and slices are always read here,
so that scores are held against the examples themselves. A champion that cannot read this run's examples, because a
column is gone or the label has other classes, is left out and the evaluation says why.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import (
    AuxiliaryScores,
    Difference,
    DrawnBy,
    EvaluateRequest,
    Evaluation,
    Evidence,
    GoldenScores,
    Manifest,
    Metric,
    ModelScores,
    Quality,
    RegressionLabel,
    Report,
    Scores,
    ScoresFile,
    Slice,
    SliceDifference,
)
from trainer.contract.reading import read_document, serialise
from trainer.errors import NEW_ATTEMPT, DataError, RequestError
from trainer.evaluation.days import find_days
from trainer.evaluation.importance import draw_rows, measure_importance
from trainer.evaluation.leakage import require_no_leakage
from trainer.evaluation.lite.artifacts import make_lite_models
from trainer.evaluation.reference.lines import Trained, compare_lines, train_lines
from trainer.evaluation.score_job import file_uri, scores_document
from trainer.evaluation.scores import Examples, align_scores, read_given_scores, shards_of, write_scores
from trainer.evaluation.scoring import (
    BEST,
    CHALLENGER,
    CHAMPION,
    NOTHING_FURTHER,
    Columns,
    Further,
    Model,
    Scored,
    load_model,
    measure_threshold,
    score,
)
from trainer.evaluation.serving import check_serving
from trainer.evaluation.slices import Cut, cut
from trainer.evaluation.splits import VALIDATION, needs_validation
from trainer.evaluation.worst import worst_examples
from trainer.input.source import Source, Split
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics, bootstrap_slices, find_evidence
from trainer.objective.curves import draw_curves
from trainer.objective.evidence import Rows, gather_evidence, kinds_of_rows
from trainer.objective.labels import class_count, require_labels, require_weights
from trainer.objective.metrics import Floats, confusion, count_labels, measure_baseline, weigh_labels
from trainer.objective.number_metrics import describe_answers, measure_baselines
from trainer.objective.quality import count_answers, measure_by
from trainer.saved_model.model import StoredModel
from trainer.storage import Storage, join_uri

LOGGER = logging.getLogger(__name__)
_MOST_CLASSES_SHOWN = 100
_MOST_CLASSES_RANKED = 20


def evaluate(
    request: EvaluateRequest, manifest: Manifest, source: Source, storage: Storage, request_digest: str | None = None
) -> Evaluation:
    """Score, measure, and write the evaluation.

    Args:
        source: Opens the split, and the split golden where the request asks for it.
        request_digest: SHA-256 of the request's bytes.

    Raises:
        RequestError: No examples, an unknown column, a challenger that cannot read these examples, a champion that
            was trained on some of them, or scores of another trainer that break the contract.
    """
    columns = Columns(manifest, request.label, request.auxiliary_labels)
    _require_columns(request, columns, _text_columns(request))
    split = source.open_split(request.split)
    judged = _judged_models(request, columns, storage)
    require_no_leakage(request, manifest.splits[request.split], storage, compared=CHAMPION in judged.names)
    comparison = _Comparison(request, manifest, columns, judged, storage)
    lines = train_lines(request, manifest, source, columns)
    scored = comparison.score_tested(split, lines)
    cuts = cut(scored.slices, request.slices, request.crossed_slices, request.min_slice_examples, scored.weights)
    measured = {name: _judge(request, scored, name, cuts) for name in scored.scores if name != BEST}
    full = measured[CHALLENGER].metrics
    golden = _score_frozen_set(request, manifest, source, comparison) if request.golden else None
    chosen_on = comparison.score_validation(source.open_split(VALIDATION)) if needs_validation(request) else None
    comparison.write_documents(request_digest)
    evaluation = Evaluation(
        model=request.model,
        run_key=request.run_key,
        request_digest=request_digest,
        split=request.split,
        rows=len(scored.labels),
        **_constants(request, scored),
        shards=shards_of(manifest.splits[request.split]),
        challenger=measured[CHALLENGER],
        champion=measured.get(CHAMPION),
        champion_skipped=judged.skipped,
        **(_differences(request, scored, full, cuts) if CHAMPION in measured else {"difference": None}),
        **_beside_best(request, scored, judged.best_skipped),
        threshold=measure_threshold(request, scored, chosen_on, _resampling(request, scored)),
        reference=compare_lines(request, scored, lines, _resampling(request, scored)),
        golden=golden,
        lite=make_lite_models(request, manifest, split, full, storage),
        serving=check_serving(request, judged.models, scored, columns, storage),
        worst=worst_examples(request, scored, CHALLENGER, CHAMPION, split, columns),
        importance=measure_importance(request, scored, judged.models, _resampling(request, scored), columns),
    )
    storage.write_once(request.evaluation_uri, serialise(evaluation))
    return evaluation


def _text_columns(request: EvaluateRequest) -> list[str]:
    """Return the columns that rows are cut and grouped by, each once."""
    crossed = itertools.chain.from_iterable(request.crossed_slices)
    return list(dict.fromkeys([*request.slices, *crossed, *([request.group] if request.group else [])]))


def _require_columns(request: EvaluateRequest, columns: Columns, texts: Sequence[str]) -> None:
    """Check that everything can be read by which examples are cut, grouped, weighted or held against."""
    columns.require_slices(texts)
    columns.require_numbers({f"baseline {name!r}": column for name, column in request.baselines.items()})
    columns.require_numbers({"weight": request.weight} if request.weight else {}, "weight")


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """What is compared.

    Attributes:
        models: Those that are asked here, by their part in the comparison.
        given: What the trainers of others say of theirs.
        skipped: Why the champion is not among them; None: it is, or there is none.
        best_skipped: The same of the best champion of late.
    """

    models: Mapping[str, StoredModel] = field(default_factory=dict)
    given: Mapping[str, ModelScores] = field(default_factory=dict)
    skipped: str | None = None
    best_skipped: str | None = None

    @property
    def names(self) -> list[str]:
        """Their parts, the challenger first."""
        return [name for name in (CHALLENGER, CHAMPION, BEST) if name in self.models or name in self.given]


def _judged_models(request: EvaluateRequest, columns: Columns, storage: Storage) -> _Judged:
    """Load what can be compared, the challenger first; and say why the champion is not among it."""
    report_uri, champion = request.challenger.report_uri, request.champion
    digest = read_document(Report, report_uri, storage).model_digest if report_uri else None
    models: dict[str, StoredModel] = {}
    given: dict[str, ModelScores] = {}
    for name, side in ((CHALLENGER, request.challenger), (CHAMPION, champion)):
        if side is None:
            continue
        known = side.model_digest or (digest if name == CHALLENGER else None)
        if side.scores_uri:
            given[name] = read_given_scores(side.scores_uri, side.model_uri, known, storage)
            skipped = given[name].skipped
            mismatch = (skipped, "scores") if skipped else None
        else:
            models[name] = load_model(side.model_uri, storage, known)
            mismatch = columns.mismatch(models[name])
        if mismatch and name == CHALLENGER:
            raise DataError(f"{CHALLENGER} model", *mismatch, NEW_ATTEMPT)
        if mismatch and champion:
            models.pop(name, None)
            given.pop(name, None)
            skipped = f"champion version {champion.version_id} {mismatch[0]}"
            LOGGER.warning("evaluate: the challenger is not compared with the champion: %s", skipped)
            return _Judged(models=models, given=given, skipped=skipped)
    return _with_best(request, _Judged(models=models, given=given), columns, storage)


def _with_best(request: EvaluateRequest, judged: _Judged, columns: Columns, storage: Storage) -> _Judged:
    """Add the best champion of late, or why it cannot be asked: nothing that is wrong with it ends the job."""
    best = request.best
    if best is None or request.champion is None:
        return judged
    models, given = dict(judged.models), dict(judged.given)
    try:
        if best.scores_uri:
            given[BEST] = read_given_scores(best.scores_uri, best.model_uri, best.model_digest, storage)
            skipped = given[BEST].skipped
        else:
            models[BEST] = load_model(best.model_uri, storage, best.model_digest)
            mismatch = columns.mismatch(models[BEST])
            skipped = mismatch[0] if mismatch else None
    except RequestError as error:
        skipped = f"cannot be asked: {error.where}: {error.found}"
    if skipped is None:
        return replace(judged, models=models, given=given)
    skipped = f"version {best.version_id} {skipped}"
    LOGGER.warning("evaluate: the challenger is not compared with the best champion of late: %s", skipped)
    return replace(judged, best_skipped=skipped)


class _Comparison:
    """The models' answers, split by split.

    Args:
        request: What the judge is asked.
        manifest: Of the run's examples.
        columns: Of the examples.
        judged: The models.
        storage: Where scores are and go.
    """

    def __init__(
        self, request: EvaluateRequest, manifest: Manifest, columns: Columns, judged: _Judged, storage: Storage
    ) -> None:
        self._request, self._manifest, self._columns = request, manifest, columns
        self._judged, self._storage = judged, storage
        self._files: dict[str, dict[str, ScoresFile]] = {name: {} for name in judged.models}

    def score_tested(self, split: Split, lines: Sequence[Trained] = ()) -> Scored:
        """Score the split that is judged, with all by which its rows are cut, grouped or held against."""
        request = self._request
        further = Further(
            slices=_text_columns(request),
            numbers=tuple(request.baselines.values()),
            auxiliary=request.auxiliary_labels,
            drawing=draw_rows(request, self._judged.models),
        )
        scored = self.score_split(request.split, split, further, lines)
        spans = {file.span for file in self._manifest.splits[request.split].files}
        if len(spans) < 2 and not (request.by_day or request.metrics_by_day):  # examples without a time
            return scored
        days = find_days(self._manifest.splits[request.split], request.key, scored.keys, self._storage)
        return replace(scored, days=days)

    def score_split(
        self,
        name: str,
        split: Split,
        further: Further = NOTHING_FURTHER,
        lines: Sequence[Trained] = (),
    ) -> Scored:
        """Read a split; ask the models that are here and the reference lines, and take the given answers of the others.

        Raises:
            DataError: A corrupt example, or answers that are none or of other examples.
        """
        label, key = self._request.label, self._request.key
        trained: dict[str, Model] = {item.name: item.line for item in lines if item.line}
        read = replace(further, numbers=self._with_weight(further.numbers))
        scored = score(split, self._columns, label, key, {**trained, **self._judged.models}, read)
        references = {name: scored.scores[name] for name in trained}
        scored = self._of_models(scored)
        examples = self._examples(name, scored)
        scores = {**scored.scores, **{side: self._given(side, name, examples) for side in self._judged.given}}
        if self._request.scores_uri:
            for side, answers in scored.scores.items():
                uri = file_uri(self._document_uri(side), name)
                self._files[side][name] = write_scores(uri, examples, answers, self._storage)
        scores = {side: scores[side] for side in self._judged.names}
        return replace(scored, scores=scores, weights=self._weights(name, scored), references=references)

    def _of_models(self, scored: Scored) -> Scored:
        """Return what the models that are asked here read and answered, without the lines'."""
        read = {name for model in self._judged.models.values() for name in model.inputs}
        scores = {name: scored.scores[name] for name in self._judged.models}
        return replace(
            scored,
            scores=scores,
            auxiliary={name: scored.auxiliary[name] for name in self._judged.models},
            requests={name: values for name, values in scored.requests.items() if name in read},
        )

    def score_validation(self, split: Split) -> tuple[Floats, Floats, Floats | None]:
        """Read the validation split; give its labels, what the challenger alone answers, and its weights. [n] each."""
        label, key = self._request.label, self._request.key
        asked = {name: model for name, model in self._judged.models.items() if name == CHALLENGER}
        scored = score(split, self._columns, label, key, asked, Further(numbers=self._with_weight()))
        scores = scored.scores.get(CHALLENGER)
        if scores is None:
            scores = self._given(CHALLENGER, VALIDATION, self._examples(VALIDATION, scored))
        return scored.labels, scores, self._weights(VALIDATION, scored)

    def _weights(self, name: str, scored: Scored) -> Floats | None:
        """Return how much each example of a split counts."""
        if (column := self._request.weight) is None:
            return None
        weights = scored.numbers[column]
        require_weights(column, weights, f"split {name}, ")
        if not weights.any():
            raise DataError(f"split {name}, weight {column!r}", "0 in every example", "one above 0")
        return weights

    def _with_weight(self, numbers: Sequence[str] = ()) -> list[str]:
        return [*numbers, *([self._request.weight] if self._request.weight else [])]

    def _examples(self, name: str, scored: Scored) -> Examples:
        return Examples(split=self._manifest.splits[name], keys=scored.keys, labels=scored.labels)

    def _given(self, side: str, name: str, examples: Examples) -> Floats:
        """Return what a model's own trainer says of a split."""
        where, file = f"scores of the {side}, split {name}", self._judged.given[side].splits.get(name)
        return align_scores(where, file, examples, self._request.label, self._storage)

    def write_documents(self, request_digest: str | None) -> None:
        """Write what says whose answers the files of this job hold."""
        if self._request.scores_uri:
            for name, model in self._judged.models.items():
                document = scores_document(self._request, request_digest, model, self._files[name])
                self._storage.replace(self._document_uri(name), serialise(document))

    def _document_uri(self, name: str) -> str:
        return join_uri(self._request.scores_uri or "", name, "scores.json")


def _constants(request: EvaluateRequest, scored: Scored) -> dict[str, Any]:
    """Return the evaluation's fields about the labels: what they say of a model, what answers without one reach."""
    label, labels, weights, evidence = request.label, scored.labels, scored.weights, _evidence(request, scored)
    if isinstance(label, RegressionLabel):
        columns = {name: (column, scored.numbers[column]) for name, column in request.baselines.items()}
        baselines = measure_baselines(labels, scored.scores[CHALLENGER], columns, label.quantiles, weights)
        return {"evidence": evidence, "label_rate": None, "baseline": None, "baselines": baselines}
    if label.kind == "binary":
        rate = float(np.average(labels, weights=weights))
        return {"evidence": evidence, "label_rate": rate, "baseline": measure_baseline(labels, weights=weights)}
    classes = class_count(label)
    by_class = None if weights is None else tuple(weigh_labels(labels, classes, weights).tolist())
    return {
        "evidence": evidence,
        "label_rate": None,
        "label_counts": tuple(count_labels(labels, classes).tolist()),
        "label_weights": by_class,
        "baseline": measure_baseline(labels, classes, weights),
    }


def _evidence(request: EvaluateRequest, scored: Scored) -> Evidence:
    """Return what the challenger's own metrics rest on: its rows, whatever groups and classes are rare in them."""
    metric: Metric = "mae" if isinstance(request.label, RegressionLabel) else "log_loss"
    kinds, weights = kinds_of_rows(metric, scored.labels, scored.scores[CHALLENGER]), scored.weights
    every = np.ones(len(scored.labels)) if weights is None else weights
    return gather_evidence(kinds, every, None, request.bootstrap.min_rows, request.bootstrap.min_groups)


def _score_frozen_set(
    request: EvaluateRequest, manifest: Manifest, source: Source, comparison: _Comparison
) -> GoldenScores:
    """Score the frozen set.

    Raises:
        DataError: The run has none.
    """
    if "golden" not in manifest.splits:
        raise DataError(
            f"manifest of run {manifest.run_key}",
            "no split golden",
            "one, as the request asks for it",
            f"Delete {request.manifest_uri}, then clear the run's export task and what follows it",
        )
    scored = comparison.score_split("golden", source.open_split("golden"))
    metrics_by_model = {
        name: measure_by(request.label, scored.labels, scores, scored.weights) for name, scores in scored.scores.items()
    }
    for name, metrics in metrics_by_model.items():
        LOGGER.info("evaluate: %s on %s examples of the frozen set: %s", name, len(scored.labels), _numbers(metrics))
    return GoldenScores(
        rows=len(scored.labels),
        shards=shards_of(manifest.splits["golden"]),
        challenger=metrics_by_model[CHALLENGER],
        champion=metrics_by_model.get(CHAMPION),
        **_loss_on_frozen_set(request, scored, metrics_by_model),
    )


def _loss_on_frozen_set(request: EvaluateRequest, scored: Scored, measured: Mapping[str, Quality]) -> dict[str, Any]:
    """Return the fields about the best champion of late, which is the champion where the request names no other."""
    best = BEST if request.best else CHAMPION
    if not request.judge_best or best not in measured:
        return {}
    grouped = replace(request, group=None)  # the frozen set is read without the columns of slices
    difference, evidence = _compare_with(grouped, scored, best)
    return {"best": measured.get(BEST), "difference": difference, "evidence": evidence}


def _beside_best(request: EvaluateRequest, scored: Scored, skipped: str | None) -> dict[str, Any]:
    """Return the evaluation's fields about the best champion of late."""
    if BEST not in scored.scores:
        return {"best_skipped": skipped}
    groups = scored.groups_by(request.group)
    metrics = measure_by(request.label, scored.labels, scored.scores[BEST], scored.weights, groups)
    LOGGER.info("evaluate: %s champion of late on %s examples: %s", BEST, len(scored.labels), _numbers(metrics))
    difference, evidence = _compare_with(request, scored, BEST)
    return {"best": metrics, "best_difference": difference, "best_evidence": evidence}


def _compare_with(request: EvaluateRequest, scored: Scored, other: str) -> tuple[Difference | None, Evidence]:
    """Return challenger minus another model in the metric that decides, and what that rests on."""
    pair, resampling = _pair(request, scored, other), _resampling(request, scored)
    difference = bootstrap_metrics(pair, [request.metric], resampling).get(request.metric)
    return difference, find_evidence(pair, request.metric, resampling)


def _pair(request: EvaluateRequest, scored: Scored, other: str) -> Pair:
    groups = scored.groups_by(request.group)
    return Pair.of(request.label, scored.labels, scored.scores[CHALLENGER], scored.scores[other], groups)


def _drawn_by(request: EvaluateRequest, scored: Scored) -> DrawnBy:
    """Return what is resampled together: few days would say less than their rows."""
    if request.group:
        return "groups"
    days = len(scored.days.names) if scored.days and request.by_day else 0
    return "days" if days >= request.bootstrap.min_days else "rows"


def _resampling(request: EvaluateRequest, scored: Scored) -> Resampling:
    drawn, drawn_by = request.bootstrap, _drawn_by(request, scored)
    groups = scored.groups_by(request.group)
    if scored.days and drawn_by == "days":
        groups = scored.days.of_row
    return Resampling(
        samples=drawn.samples,
        seed=drawn.seed,
        confidence=drawn.confidence,
        groups=groups,
        weights=scored.weights,
        min_rows=drawn.min_rows,
        min_groups=drawn.min_groups,
        unit="days" if drawn_by == "days" else "groups",
    )


def _judge(request: EvaluateRequest, scored: Scored, name: str, cuts: Mapping[str, Sequence[Cut]]) -> Scores:
    """Measure one model on all examples and on every slice."""
    scores, weights, slices = scored.scores[name], scored.weights, []
    groups = scored.groups_by(request.group)
    for part in itertools.chain.from_iterable(cuts.values()):
        theirs = None if weights is None else weights[part.rows]
        own = None if groups is None else groups[part.rows]
        metrics = measure_by(request.label, scored.labels[part.rows], scores[part.rows], theirs, own)
        slices.append(Slice(column=part.column, value=part.value, rows=len(part.rows), metrics=metrics))
    metrics, label = measure_by(request.label, scored.labels, scores, weights, groups), request.label
    LOGGER.info("evaluate: %s on %s examples: %s", name, len(scored.labels), _numbers(metrics))
    kind: dict[str, Any] = {"counted": count_answers(label, scores, _rows_by_day(scored, name))}
    if isinstance(label, RegressionLabel):
        kind["answers"] = describe_answers(scored.labels, scores, label.quantiles)
    else:
        kind["confusion"] = _confusion(scored.labels, scores)
        kind["curves"] = draw_curves(scored.labels, scores, weights)
    auxiliary, days = _measure_auxiliary(request, scored, name), _measure_days(request, scored, name)
    return Scores(metrics=metrics, slices=tuple(slices), auxiliary=auxiliary, by_day=days, **kind)


def _measure_days(request: EvaluateRequest, scored: Scored, model: str) -> tuple[Slice, ...]:
    """Measure one model on each test day, where that is asked for."""
    if scored.days is None or not request.metrics_by_day:
        return ()
    scores, weights, groups = scored.scores[model], scored.weights, scored.groups_by(request.group)
    measured = []
    for day, rows in zip(scored.days.names, scored.days.rows(), strict=True):
        theirs = None if weights is None else weights[rows]
        if not len(rows) or (theirs is not None and not theirs.any()):
            continue
        own = None if groups is None else groups[rows]
        metrics = measure_by(request.label, scored.labels[rows], scores[rows], theirs, own)
        measured.append(Slice(column="day", value=day, rows=len(rows), metrics=metrics))
    return tuple(measured)


def _rows_by_day(scored: Scored, model: str, among: npt.NDArray[np.bool_] | None = None) -> list[Rows] | None:
    """Return the rows of each test day; None: not the challenger's, whose answers alone are counted so."""
    if model != CHALLENGER:
        return None
    return scored.days.rows(among) if scored.days else []


def _measure_auxiliary(request: EvaluateRequest, scored: Scored, model: str) -> dict[str, AuxiliaryScores]:
    """Measure a model's answers to auxiliary labels where these are known."""
    measured, weights = {}, scored.weights
    for label in request.auxiliary_labels:
        values, answers = scored.numbers[label.name], scored.auxiliary.get(model, {}).get(label.name)
        known = np.isfinite(values)
        theirs = None if weights is None else weights[known]
        if answers is None or not (known if theirs is None else theirs).any():
            continue
        require_labels(label, values[known], "auxiliary ")
        if not np.isfinite(answers[known]).all():
            LOGGER.warning("evaluate: %s, auxiliary label %s: answers are not finite", model, label.name)
            continue
        metrics = measure_by(label, values[known], answers[known], theirs)
        finite = np.asarray(np.isfinite(answers.reshape(len(answers), -1)).all(axis=1), np.bool_)
        counted = count_answers(label, answers[finite], _rows_by_day(scored, model, finite))
        measured[label.name] = AuxiliaryScores(rows=int(known.sum()), metrics=metrics, counted=counted)
        LOGGER.info("evaluate: %s, auxiliary label %s: %s", model, label.name, _numbers(metrics))
    return measured


def _differences(
    request: EvaluateRequest, scored: Scored, measured: Quality, cuts: Mapping[str, Sequence[Cut]]
) -> dict[str, Any]:
    """Return the evaluation's fields about the differences: of every metric, and of the one that decides by slice."""
    pair, resampling = _pair(request, scored, CHAMPION), _resampling(request, scored)
    many = pair.challenger.ndim == 2 and pair.challenger.shape[1] > _MOST_CLASSES_RANKED
    left_out = {"auc"} if many else set()  # it sorts and sums once for each class
    shown = [name for name in get_args(Metric) if getattr(measured, name, None) is not None and name not in left_out]
    every = bootstrap_metrics(pair, list(dict.fromkeys([request.metric, *shown])), resampling)
    slices = []
    for each in cuts.values():  # a column at a time: it is all sorted again, and then forgotten
        compared = bootstrap_slices(pair, request.metric, [part.rows for part in each], resampling)
        slices += [
            SliceDifference(column=part.column, value=part.value, rows=len(part.rows), difference=found, evidence=basis)
            for part, (found, basis) in zip(each, compared, strict=True)
        ]
    return {
        "difference": every.get(request.metric),
        "difference_evidence": find_evidence(pair, request.metric, resampling),
        "drawn_by": _drawn_by(request, scored),
        "day_differences": _by_day(request, scored, pair, resampling),
        "differences": tuple(every.values()),
        "slice_differences": tuple(slices),
    }


def _by_day(
    request: EvaluateRequest, scored: Scored, pair: Pair, resampling: Resampling
) -> tuple[SliceDifference, ...]:
    """Return the difference of each test day, by its rows."""
    if scored.days is None or not request.by_day:
        return ()
    rows = scored.days.rows()
    compared = bootstrap_slices(pair, request.metric, rows, replace(resampling, groups=None))
    return tuple(
        SliceDifference(column="day", value=name, rows=len(part), difference=found, evidence=basis)
        for name, part, (found, basis) in zip(scored.days.names, rows, compared, strict=True)
        if len(part)
    )


def _confusion(labels: Floats, scores: Floats) -> tuple[tuple[int, ...], ...] | None:
    if scores.ndim == 1 or scores.shape[1] > _MOST_CLASSES_SHOWN:
        return None
    return tuple(tuple(row) for row in confusion(labels, scores).tolist())


def _numbers(metrics: Quality) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in vars(metrics).items() if value is not None)
