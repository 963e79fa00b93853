"""The challenger as an endpoint will have it: loaded afresh from storage, and asked what customers may ask.

Comes in: the models of a comparison, and the first test rows with the scores that they got. Goes out: how the answers
differ from those scores, alone and together; which missing or unknown values have no finite answer; how long one
request takes, beside the champion. Nothing is decided here, and nothing that is wrong with a model ends the job.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.contract.documents import EvaluateRequest, Feature, Latency, RegressionLabel, ServedAnswers, Serving
from trainer.evaluation.scoring import CHALLENGER, CHAMPION, Columns, Scored, fetched_model
from trainer.features.values import MISSING_NUMBER, MISSING_TIME
from trainer.objective.labels import labels_of
from trainer.objective.metrics import Floats
from trainer.saved_model.model import StoredModel
from trainer.saved_model.served import LOAD_ERRORS, RequestColumns, ServedModel, signature_differences
from trainer.storage import Storage

LOGGER = logging.getLogger(__name__)

ROWS_TOGETHER = 1000
UNKNOWN = "\N{SNOWMAN} never seen".encode()
NOT_ASKED = "a trainer of another framework asks its model itself, and the comparison has its scores alone"
_LONGEST_S = 10.0
"""For requests of one row, and again for those with malformed values: a slow model is asked fewer of them."""
_WARM_UP = 10
_LAST_TIME = 253_402_300_799_999_999
"""The last microsecond of the year 9999, in microseconds since 1970: BigQuery has no later one."""


def check_serving(
    request: EvaluateRequest,
    models: Mapping[str, StoredModel],
    scored: Scored,
    columns: Columns,
    storage: Storage,
) -> Serving:
    """Load the challenger as serving does, and ask it; time it beside the champion.

    Args:
        models: That were scored here, by their part in the comparison.
        scored: Their answers.
        columns: Of the examples: they tell how many rows a model can take at once.
    """
    if CHALLENGER not in models:
        return Serving(skipped=NOT_ASKED)
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            challenger = stack.enter_context(_load(models[CHALLENGER], storage))
            key = columns.key_spec(request.key) if request.key_input else None
            found = Serving(signature=signature_differences(challenger, request, key))
            if not found.signature:
                champion = stack.enter_context(_champion(models.get(CHAMPION), storage))
                asked = _Asked.of(request, scored, columns)
                found = asked.ask(challenger, champion)
        except LOAD_ERRORS as error:
            found = Serving(problem=_line(error))
    LOGGER.info("evaluate: as serving loads it, in %.1f s: %s", time.monotonic() - started, _summary(found))
    return found


def _load(model: StoredModel, storage: Storage) -> ServedModel:
    with fetched_model(model.uri, storage, model.digest) as path:
        return ServedModel(path)


def _champion(model: StoredModel | None, storage: Storage) -> contextlib.AbstractContextManager[ServedModel | None]:
    """Load what the challenger is timed beside; a champion that cannot be loaded so is no fault of the challenger's."""
    if model is None:
        return contextlib.nullcontext()
    try:
        return _load(model, storage)
    except LOAD_ERRORS as error:
        LOGGER.warning("evaluate: the champion is not timed: %s", _line(error))
        return contextlib.nullcontext()


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Requests, and the answers that are expected.

    Attributes:
        rows: By column. [n] each, or [n, longest]
        keys: As bytes. [n]
        scores: [n] or [n, classes or quantiles]
        output: Name of the label's.
        scale: What distances are divided by.
        together: Rows in the large request.
        features: Of the model.
    """

    rows: RequestColumns
    keys: npt.NDArray[np.object_]
    scores: Floats
    output: str
    scale: float
    together: int
    features: Sequence[Feature]

    @classmethod
    def of(cls, request: EvaluateRequest, scored: Scored, columns: Columns) -> _Asked:
        """Take the first rows."""
        count = len(next(iter(scored.requests.values())))
        scores = scored.scores[CHALLENGER][:count]
        is_number = isinstance(request.label, RegressionLabel)
        return cls(
            rows=scored.requests,
            keys=scored.keys[:count],
            scores=scores,
            output=labels_of(request.label).answers.output,
            scale=(float(np.abs(scores).max()) or 1.0) if is_number else 1.0,
            together=min(ROWS_TOGETHER, columns.rows_at_once(set(scored.requests)) or ROWS_TOGETHER),
            features=request.features,
        )

    def ask(self, challenger: ServedModel, champion: ServedModel | None) -> Serving:
        """Ask for rows alone, for many at once, and for values that no example has.

        Raises:
            LOAD_ERRORS: The challenger does not take rows of the test split.
        """
        if (problem := self._key_problem(challenger)) is not None:
            return Serving(problem=problem)
        order = np.arange(self.together) % len(self.keys)
        together = challenger.answer(self._chosen(order))[self.output]
        answers, seconds = self._ask_alone([challenger, champion] if champion else [challenger])
        malformed, unanswered = self._ask_malformed(challenger)
        return Serving(
            single=self._compare(np.concatenate(answers), np.arange(len(answers)), 1),
            together=self._compare(together, order, self.together),
            inputs=malformed,
            unanswered=tuple(unanswered),
            latency=_latency(seconds[0]),
            champion_latency=_latency(seconds[1]) if champion else None,
        )

    def _key_problem(self, model: ServedModel) -> str | None:
        """Say how the keys of requests differ from those that come back with the answers; None: they do not."""
        if model.key is None:
            return None
        keys = self.keys if model.inputs[model.key].dtype == tf.string else self.keys.astype(np.int64)
        found = np.asarray(model.answer({**self.rows, model.key: keys})[model.key])
        if np.array_equal(found, keys):
            return None
        return f"the key {model.key!r} comes back otherwise than it was sent"

    def _chosen(self, order: npt.NDArray[np.int_]) -> RequestColumns:
        return {name: values[order] for name, values in self.rows.items()}

    def _ask_alone(self, models: Sequence[ServedModel]) -> tuple[list[Floats], list[list[float]]]:
        """Ask all models for one row after the other, in turns; give the first one's answers, and each one's times."""
        answers: list[Floats] = []
        seconds: list[list[float]] = [[] for _ in models]
        first = self._chosen(np.arange(1))
        for model in models:
            for _ in range(_WARM_UP):
                model.answer(first)
        until = time.monotonic() + _LONGEST_S
        for index in range(len(self.keys)):
            row = self._chosen(np.arange(index, index + 1))
            turn = range(len(models))
            for number in turn if index % 2 else reversed(turn):
                started = time.perf_counter()
                found = models[number].answer(row)
                seconds[number].append(time.perf_counter() - started)
                if number == 0:
                    answers.append(found[self.output])
            if time.monotonic() > until:
                break
        return answers, seconds

    def _ask_malformed(self, model: ServedModel) -> tuple[int, list[str]]:
        """Ask for missing and unknown values; give how many requests that were, and which have no finite answer."""
        count, unanswered = 0, []
        until = time.monotonic() + _LONGEST_S
        for words, row in _malformed_rows(self.features, self._chosen(np.arange(1))):
            count += 1
            try:
                found = model.answer(row)
                unanswered += [
                    f"{words}: {name} is not finite" for name, values in found.items() if not _finite(values)
                ]
            except LOAD_ERRORS as error:
                unanswered.append(f"{words}: {_line(error)}")
            if time.monotonic() > until:
                break
        return count, unanswered

    def _compare(self, answers: Floats, order: npt.NDArray[np.int_], batch: int) -> ServedAnswers:
        """Hold answers to the rows in an order against their scores. [m] or [m, classes or quantiles]."""
        distances = np.abs(answers - self.scores[order]).reshape(len(order), -1).max(axis=1)
        finite = np.isfinite(distances)
        worst = np.argmin(finite) if not finite.all() else np.argmax(distances)
        return ServedAnswers(
            rows=min(len(order), len(self.keys)),
            batch=batch,
            not_finite=int((~finite).sum()),
            max_error=float(distances[finite].max()) / self.scale if finite.any() else None,
            key=self.keys[order[worst]].decode(errors="replace"),
        )


def _malformed_rows(features: Sequence[Feature], row: RequestColumns) -> Iterator[tuple[str, RequestColumns]]:
    """Yield requests of one row in which all features, and then each by itself, have a value that no example has.

    JSON has no NaN: a missing number is a very small one there, which must be as good.
    """
    texts = [feature.name for feature in features if row[feature.name].dtype == object]
    times = [feature.name for feature in features if feature.kind == "time"]
    numbers = [feature.name for feature in features if feature.name not in {*texts, *times}]
    known = {feature.name for feature in features if feature.kind != "image"}
    kinds: Mapping[str, Mapping[str, bytes | float | int]] = {
        "missing": {
            **dict.fromkeys(texts, b""),
            **dict.fromkeys(numbers, np.nan),
            **dict.fromkeys(times, MISSING_TIME),
        },
        "the last one": dict.fromkeys(times, _LAST_TIME),
        f"{MISSING_NUMBER:g}": dict.fromkeys(numbers, MISSING_NUMBER),
        "unknown": dict.fromkeys((name for name in texts if name in known), UNKNOWN),
    }
    for words, values in kinds.items():
        changed = {name: np.full_like(row[name], value) for name, value in values.items()}
        if len(changed) > 1:
            yield f"all features {words}", {**row, **changed}
        for name, column in changed.items():
            yield f"{name} {words}", {**row, name: column}


def _finite(values: Floats) -> bool:
    return values.dtype == object or bool(np.isfinite(values).all())  # a class's name is always one


def _latency(seconds: Sequence[float]) -> Latency:
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return Latency(p50_ms=float(p50), p99_ms=float(p99))


def _line(error: Exception) -> str:
    """Return the line of an error's message that says what is wrong: around it TensorFlow names nodes, indented."""
    lines = [line for line in str(error).splitlines() if line and not line[0].isspace()]
    return f"{type(error).__name__}: {lines[-1][:300] if lines else 'no message'}"


def _summary(found: Serving) -> str:
    if found.problem or found.signature:
        return found.problem or ", ".join(found.signature)
    asked = [item for item in (found.single, found.together) if item]
    worst = [f"{item.rows} rows by {item.batch}: {item.max_error} off, {item.not_finite} not finite" for item in asked]
    return "; ".join([*worst, f"{found.inputs} malformed requests", *found.unanswered])
