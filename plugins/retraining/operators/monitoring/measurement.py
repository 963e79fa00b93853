"""The task `measure`: all that is watched of a model, one signal for each.

What the endpoint was asked and what it answered, by its log in BigQuery and by Cloud Monitoring; how good the answers
were, by the labels that are known by now; how old the champion is, and what it lives on: the tables that the query
reads, or the source's files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

from airflow.sdk import Context

from retraining.core.data.class_names import class_parameters, require_texts, with_class_numbers
from retraining.core.data.snapshot import render_columns_sql
from retraining.core.data.sql import Parameter, Query, midnight
from retraining.core.documents import DriftChampion, EvaluateRequest, Evaluation, Signal, Signals
from retraining.core.documents.document import format_time
from retraining.core.documents.monitoring import NamedState
from retraining.core.errors import DataError, RetrainingError
from retraining.core.metrics import Quality
from retraining.core.monitoring.distributions import AnswerBaseline, answer_baselines
from retraining.core.monitoring.drift import Obstacle, judge_log, judge_nothing, judge_shifts
from retraining.core.monitoring.estimates import judge_estimate
from retraining.core.monitoring.performance import WAY_OUT_WITHOUT_KEYS, Reference, judge_performance
from retraining.core.monitoring.request_log import (
    AnswerWindow,
    KeyTable,
    Labels,
    LogWindows,
    RequestLog,
    VersionAnswers,
    missing_label_columns,
    read_labelled_answers,
    read_requests,
    render_performance_sql,
    render_requests_sql,
)
from retraining.core.monitoring.signals import (
    Answered,
    ServedWindows,
    judge_age,
    judge_no_metrics,
    judge_serving,
    judge_sources,
    not_judged,
)
from retraining.core.naming import bigquery, storage, vertex
from retraining.core.naming.run_keys import RunKey
from retraining.core.planning import windows
from retraining.core.planning.params import require_known
from retraining.core.settings import include_path
from retraining.core.signal_kinds import SignalKind
from retraining.core.spec.files import load_labels_query, load_query
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.sql_file import without_semicolon
from retraining.core.untyped import XCom
from retraining.hooks import session
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.lineage import LineageMixin
from retraining.operators.airflow.params import monitor_params
from retraining.operators.monitoring.attributions import watch_attributions
from retraining.operators.monitoring.watch import (
    Baseline,
    ByteLimit,
    Seen,
    Watch,
    begin_watch,
    load_spec,
    sent_by_monitor,
    unasked_for,
)
from retraining.operators.record.ownership import require_own_bucket, require_own_model
from retraining.operators.record.run_record import Record


def watch_requests(watch: Watch) -> Seen:
    """Return traffic, errors, latency, skew, drift and prediction drift; without an endpoint those of scored rows."""
    log_windows = LogWindows.before(watch.spec, watch.as_of)
    if not watch.spec.deployment.endpoint:
        return _watch_answers(watch, log_windows, None)
    if watch.endpoint is None:
        gone = f"{watch.spec.name} has no endpoint: it was deleted, or nothing was deployed yet."
        traffic = not_judged("traffic", "requests", "no_endpoint", gone)
        return Seen(signals=(traffic, *judge_nothing(watch.spec, Obstacle(reason="no_endpoint", message=gone))))
    served, signals = _watch_serving(watch, watch.endpoint, log_windows)
    requests = None if served is None else sum(item.requests for item in served.values())
    if requests and watch.spec.monitoring.attributions:  # which the log's are told without
        requests = max(0, requests - sent_by_monitor(watch, log_windows.start, log_windows.end))
    seen = _watch_answers(watch, log_windows, requests)
    return Seen(signals=(*signals, *seen.signals), requests=seen.requests, bytes_read=seen.bytes_read)


def _watch_answers(watch: Watch, log_windows: LogWindows, requests: int | None) -> Seen:
    """Return the signals of the log; `requests` are those that Cloud Monitoring counted, None: that is not known."""
    if watch.champion is None or watch.baseline is None:
        nobody = f"No champion of {watch.spec.name} serves, so there is nothing to compare with."
        return Seen(signals=judge_nothing(watch.spec, Obstacle(reason="no_champion", message=nobody)))
    return _watch_log(watch, watch.baseline, log_windows, vertex.deployed_model_id(watch.champion.run_key), requests)


def _watch_serving(
    watch: Watch, endpoint: Endpoint, log_windows: LogWindows
) -> tuple[dict[str, Answered] | None, tuple[Signal, ...]]:
    """Return what deployed models answered in the window (None: it is not told), and the signals of that."""
    metrics = watch.cloud.serving_metrics
    try:
        now = metrics.answered(endpoint.name, log_windows.start, log_windows.end)
        earlier = metrics.answered(endpoint.name, log_windows.earlier_start, log_windows.earlier_end)
    except Exception as error:  # Google's have no common class; what is not explained is raised again
        reason = session.explain(error)
        if reason is None:  # a retry may mend it
            raise
        return None, judge_no_metrics(f"Cloud Monitoring does not answer: {reason}")
    names = {key: f"version {vertex.version_id_of(name)}" for key, name in endpoint.deployed.items()}
    return now, judge_serving(watch.spec, ServedWindows(now=now, earlier=earlier, names=names))


def _watch_log(
    watch: Watch, baseline: Baseline, log_windows: LogWindows, deployed_id: str, requests: int | None
) -> Seen:
    spec, train = watch.spec, baseline.statistics.splits["train"]
    answers = answer_baselines(spec, train, baseline.evaluation)
    rows, size = [], 0
    if watch.log_table is not None:
        query = _log_query(watch, watch.log_table, baseline, log_windows, answers)
        limit, warehouse = ByteLimit(spec.monitoring.max_gigabytes), watch.cloud.warehouse
        if reason := limit.reason_to_refuse(warehouse, {"requests": query}):
            message = f"{reason}: raise it, shorten window_hours, or partition the request log by logging_time."
            return Seen(signals=judge_nothing(spec, Obstacle(reason="too_expensive", message=message)))
        answer = limit.run(warehouse, query, watch.job_id(), "requests")
        rows, size = answer.rows, answer.bytes_processed
    log: RequestLog = read_requests(rows, [item.name for item in answers])
    return Seen(
        signals=(
            *judge_log(spec, log, requests),
            *judge_shifts(spec, train, log, answers, deployed_id),
        ),
        requests=log.now.all.instances,
        bytes_read=size,
    )


def _log_query(
    watch: Watch, table: str, baseline: Baseline, log_windows: LogWindows, answers: Sequence[AnswerBaseline]
) -> Query:
    smoke_requests = unasked_for(watch, log_windows.earlier_start, log_windows.end)
    return render_requests_sql(
        watch.spec, table, baseline.statistics, log_windows, answers=answers, smoke_requests=smoke_requests
    )


KEY_COLUMNS = ("request_id", "key")


def watch_labels(watch: Watch) -> Seen:
    """Return the signals of performance, and of its estimate."""
    spec = watch.spec
    if watch.champion is None or watch.baseline is None:
        return _judge_no_labels(watch, "no_champion", f"No champion of {spec.name} serves.")
    if watch.log_table is None:
        return _judge_no_labels(watch, "no_traffic", "Nothing was logged yet.")
    keys = _find_keys(watch)
    labels = keys if isinstance(keys, Signal) else _find_labels(watch)
    evaluation, warehouse = watch.baseline.evaluation, watch.cloud.warehouse
    query = render_performance_sql(
        spec,
        _answer_window(watch, watch.log_table),
        labels if isinstance(labels, Labels) else None,
        keys if isinstance(keys, KeyTable) else None,
        evaluation.challenger.answers if evaluation else None,
    )
    limit = ByteLimit(spec.monitoring.max_gigabytes)
    if reason := limit.reason_to_refuse(warehouse, {"performance": query}):
        message = f"{reason}: raise it, or shorten monitoring.performance.window_days."
        return _judge_no_labels(watch, "too_expensive", message)
    found = limit.run(warehouse, query, watch.job_id("performance"), "performance")
    versions = {
        vertex.deployed_model_id(each.run_key): each.version_id
        for each in watch.cloud.registry.list_versions(spec.name)
        if each.run_key
    }
    champion = vertex.deployed_model_id(watch.champion.run_key)
    answered = read_labelled_answers(found.rows)
    if isinstance(labels, Labels):
        performance = judge_performance(spec, answered, versions, champion, _champion_reference(watch, watch.baseline))
    else:
        performance = (labels,)
    estimated = judge_estimate(spec, answered.get(champion, VersionAnswers()), evaluation)
    return Seen(signals=(*performance, *estimated), bytes_read=found.bytes_processed)


def _judge_no_labels(watch: Watch, reason: NamedState, message: str) -> Seen:
    """Return that neither performance nor its estimate was judged."""
    kinds: tuple[SignalKind, ...] = ("performance", "estimate")
    metric = watch.spec.evaluation.metric
    return Seen(signals=tuple(not_judged(kind, metric, reason, message) for kind in kinds))


def _find_keys(watch: Watch) -> KeyTable | Signal | None:
    """Return the caller's table of keys, None where they come with the requests, or why there are none."""
    spec, settings = watch.spec, watch.cloud.settings
    named = spec.monitoring.performance.request_keys
    if named is None:
        message = f"No answer finds its label: {WAY_OUT_WITHOUT_KEYS}."
        return (
            None
            if spec.deployment.key_input or not spec.deployment.endpoint
            else not_judged("performance", spec.evaluation.metric, "no_keys", message)
        )
    table = bigquery.full_table(named, settings.project)
    columns = [str(column["name"]) for column in watch.cloud.warehouse.table_schema(table) or ()]
    if missing := [name for name in KEY_COLUMNS if name not in columns]:
        found = f"has no column {' and no '.join(missing)}" if columns else "is not there"
        message = (
            f"monitoring.performance.request_keys: {table} {found}; expected request_id, key and, if any, instance."
        )
        return not_judged("performance", spec.evaluation.metric, "no_keys", message)
    return KeyTable(table=table, has_instance="instance" in columns)


def _find_labels(watch: Watch) -> Labels | Signal:
    """Return the query of labels, or why it gives none."""
    spec, limits = watch.spec, watch.spec.monitoring.performance
    own, metric = load_labels_query(spec, include_path()), spec.evaluation.metric
    where = limits.labels_query or spec.data.source_name
    if own is None and spec.data.files is not None:
        message = "The monitor cannot ask the examples' files for labels: name monitoring.performance.labels_query."
        return not_judged("performance", metric, "no_labels", message)
    sql = own if own is not None else load_query(spec, include_path())
    try:
        asked = render_columns_sql(spec, sql)
        schema = watch.cloud.warehouse.dry_run(asked, where).schema
        require_texts(spec, schema, where)
    except DataError as error:
        message = f"The query of labels cannot be asked. {error}"
        return not_judged("performance", metric, "no_labels", message)
    columns = [str(column["name"]) for column in schema]
    if missing := missing_label_columns(spec, columns):
        message = f"{where} has no column {' and no '.join(missing)}: labels need both."
        return not_judged("performance", metric, "no_labels", message)
    lag = timedelta(days=spec.data.label_lag_days if spec.data.split == "time" else 0)
    first = (watch.as_of - timedelta(days=limits.window_days) - lag).astimezone(UTC).date()
    as_of = Parameter(name="as_of", type="TIMESTAMP", value=format_time(watch.as_of))
    sql, classes = with_class_numbers(without_semicolon(sql), spec, checked=False), class_parameters(spec)
    if own is None and spec.data.split == "hash":
        return Labels(sql=sql, parameters=(as_of, *classes), columns=frozenset(columns), settled=watch.as_of)
    # The examples query may give labels that are not final until their lag is over; one of labels says itself.
    last = watch.as_of.astimezone(UTC).date() + timedelta(days=1) if own else windows.window(spec.data, watch.as_of).end
    settled = watch.as_of - lag if own else datetime.combine(last, time(), UTC)
    return Labels(
        sql=sql,
        parameters=(
            *classes,
            Parameter(name="window_start", type="TIMESTAMP", value=midnight(first)),
            Parameter(name="window_end", type="TIMESTAMP", value=midnight(last)),
            as_of,
        ),
        columns=frozenset(columns),
        settled=settled,
    )


def _answer_window(watch: Watch, log_table: str) -> AnswerWindow:
    start = watch.as_of - timedelta(days=watch.spec.monitoring.performance.window_days)
    return AnswerWindow(
        log_table=log_table,
        start=start,
        end=watch.as_of,
        smoke_requests=unasked_for(watch, start, watch.as_of),
    )


RECENT_CHAMPIONS = 8
"""That are looked up at most, besides the one that serves."""


def _champion_reference(watch: Watch, baseline: Baseline) -> Reference:
    """Return the champion's deciding evaluation, where it was the challenger, and those of the ones before it."""
    metrics = baseline.evaluation.challenger.metrics if baseline.evaluation else None
    weight = watch.spec.data.weight
    weighed = f"its evaluation weighs examples by {weight}, and answers have no weight" if weight else ""
    return Reference(metrics=metrics, earlier=_earlier_champions(watch), reason=weighed)


def _earlier_champions(watch: Watch) -> tuple[Quality, ...]:
    """Return the metrics of the champions that were replaced within the length of a training window, newest first.

    Each run's request names the champion that it met.
    """
    cloud, model = watch.cloud, watch.spec.name
    since = watch.as_of - timedelta(days=watch.spec.data.window_days)
    run_key, found = watch.champion.run_key if watch.champion else None, []
    for _ in range(RECENT_CHAMPIONS):
        if run_key is None or RunKey.parse(run_key).as_of <= since:
            break
        met = Record(cloud.artifacts, storage.run_uri(cloud.settings.bucket, model, run_key))
        request = met.find_document(EvaluateRequest)
        run_key = request.champion.run_key if request and request.champion else None
        if run_key is not None:
            replaced = Record(cloud.artifacts, storage.run_uri(cloud.settings.bucket, model, run_key))
            evaluation = replaced.find_document(Evaluation)
            found += [evaluation.challenger.metrics] if evaluation else []
    return tuple(found)


def watch_age(watch: Watch) -> Seen:
    """Return how old the champion's data is; of one that another stage trained, by when it did."""
    taken = watch.baseline.taken_as_of if watch.baseline else None
    as_of = taken or (RunKey.parse(watch.champion.run_key).as_of if watch.champion else None)
    return Seen(signals=(judge_age(watch.spec, as_of, watch.as_of),))


def watch_sources(watch: Watch) -> Seen:
    """Return when the sources last changed."""
    try:
        changed = {**_tables_changed(watch), **_files_changed(watch)}
    except RetrainingError as error:  # a query that BigQuery refuses: the retraining says it too, and stops there
        return Seen(signals=(not_judged("source", "hours", "source_stopped", f"The sources cannot be read: {error}"),))
    return Seen(signals=judge_sources(watch.spec, changed, watch.as_of, watch.cloud.settings.project))


def _tables_changed(watch: Watch) -> dict[str, datetime | None]:
    data, warehouse = watch.spec.data, watch.cloud.warehouse
    query = render_columns_sql(watch.spec, load_query(watch.spec, include_path()))
    return {table: warehouse.table_changed(table) for table in warehouse.dry_run(query, data.source_name).tables}


def _files_changed(watch: Watch) -> dict[str, datetime | None]:
    files, objects = watch.spec.data.files, watch.cloud.objects
    if files is None:
        return {}
    return {uri: max((found.created for found in objects.match(uri)), default=None) for uri in files.uris}


WATCHERS: tuple[Callable[[Watch], Seen], ...] = (
    watch_requests,
    watch_labels,
    watch_sources,
    watch_age,
    watch_attributions,
)
"""Each adds its signals; their order is that of the document."""


class MeasureSignalsOperator(LineageMixin, CloudOperator):
    """Measure all signals of a model: what it was asked, what it answered, what it lives on.

    Args:
        model: Name of the spec.

    Returns:
        `{monitor_uri, as_of, rows, drifted}`: instances in the window's log (None while no champion serves), and the
        subjects whose signal is exceeded.
    """

    lineage_steps = "monitor"

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Resolve the time, let every watcher look, write `signals.json`."""
        dag_run, params = context["dag_run"], context["params"]
        require_own_bucket(cloud)
        require_own_model(cloud, self.model)
        spec = load_spec(self.model)
        require_known(params, monitor_params(spec))
        spec = spec.with_overrides({"monitoring.window_hours": params["window_hours"]})
        as_of = windows.resolve_as_of(
            params["as_of"], None, dag_run.logical_date, dag_run.run_after, dag_run.start_date
        ).value
        folder = storage.monitor_uri(cloud.settings.bucket, spec.name, as_of, dag_run.run_id)
        record = Record(cloud.artifacts, folder)
        self.lineage_record = record
        measured = record.find_document(Signals)
        if measured is None:
            measured = self._measure(record, cloud, spec, as_of, f"{dag_run.run_id}|{context['ti'].max_tries}")
        for signal in measured.signals:
            self.log.info("%s %s: %s. %s", signal.kind, signal.subject, signal.state.upper(), signal.message)
        return {
            "monitor_uri": folder,
            "as_of": format_time(as_of),
            "rows": measured.requests if measured.champion else None,
            "drifted": [signal.subject for signal in measured.signals if signal.state == "exceeded"],
        }

    @staticmethod
    def _measure(record: Record, cloud: CloudPort, spec: ModelSpec, as_of: datetime, asked_by: str) -> Signals:
        champion = cloud.registry.find_by_alias(spec.name, vertex.CHAMPION)
        watch = begin_watch(cloud, record, spec, champion, as_of, asked_by)
        seen = [look(watch) for look in WATCHERS]
        measured = Signals(
            model=spec.name,
            as_of=as_of,
            window_hours=spec.monitoring.window_hours,
            champion=DriftChampion(version_id=champion.version_id, run_key=champion.run_key) if champion else None,
            endpoint_name=watch.endpoint.name if watch.endpoint else None,
            log_table=watch.log_table,
            requests=max(item.requests for item in seen),
            bytes_read=sum(item.bytes_read for item in seen),
            signals=tuple(signal for item in seen for signal in item.signals),
        )
        return record.write_once(measured)
