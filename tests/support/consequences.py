"""What follows from a model's spec, as values that can be compared: plans, statements, jobs, findings, verdicts, DAGs.

In: a spec. Out: by name, functions whose answers differ where the spec's difference matters. No document has the spec
itself or the run's key in it here, so that a key that is only kept changes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from retraining.core import documents as d
from retraining.core import settings
from retraining.core.catalog import model_check
from retraining.core.catalog.cost import load_prices
from retraining.core.checks.dataset import check_data
from retraining.core.checks.history import History, schema_changes, vanished_categories
from retraining.core.checks.labels import shifted_days
from retraining.core.data import frozen_set, image_objects, snapshot, source_files, statistics
from retraining.core.data.column_roles import mismatches
from retraining.core.documents import KINDS, ShadowTraffic
from retraining.core.errors import RetrainingError
from retraining.core.jobs import requests
from retraining.core.monitoring import attributions, multivariate, new_day, orders, policy
from retraining.core.monitoring.drift import judge_log, judge_shifts
from retraining.core.monitoring.new_day import Counted
from retraining.core.monitoring.performance import allowed_drop
from retraining.core.monitoring.request_log import LogWindows, large_batch, read_requests, render_shadow_sql
from retraining.core.monitoring.signals import Answered, ServedWindows, judge_age, judge_serving, judge_sources
from retraining.core.naming import serving
from retraining.core.notification.messages import recipients
from retraining.core.planning import plan as planning
from retraining.core.planning import windows
from retraining.core.promotion import approvals, deployments, gates, ramp, ramp_gates, rollouts, shadow
from retraining.core.promotion.explanations import explanation_spec
from retraining.core.promotion.latencies import Latencies, Measured
from retraining.core.promotion.model_cards import model_card
from retraining.core.promotion.signatures import changes_digest, signature_changes
from retraining.core.report.readiness.facts import Facts
from retraining.core.report.readiness.score import score_model
from retraining.core.scoring import plan as scoring
from retraining.core.scoring import requests as scoring_requests
from retraining.core.spec.model import ModelSpec
from retraining.core.team_code import TeamFunction
from retraining.core.tuning import decision, warm_start
from retraining.core.tuning import requests as tuning
from tests.support import number_model, request_log, small_decision, small_rollout, small_study
from tests.support.contracts import EXAMPLES
from tests.support.small_model import AS_OF, ENVIRON, SCHEMA, SQL, make_plan, make_snapshot, statistics_rows

CARD = {
    "checks": "passed",
    "manifest": "three_spans",
    "report": "first_attempt",
    "evaluation": "duel",
    "decision": "promote",
    "registration": "challenger",
    "deployment": "champion",
}
"""Documents of which a card is made beside the plan."""
COLUMNS = {"weight": "FLOAT", "tailnum": "STRING", "before": "FLOAT", "photo": "BYTES", "note": "STRING"}
COLUMNS |= {"delay": "FLOAT", "mean_1": "FLOAT", "other": "STRING", "started": "TIMESTAMP"}
COLUMNS |= {"tags": "STRING", "asked_at": "TIMESTAMP"}
ASKED = [*SCHEMA, *({"name": name, "type": kind, "mode": "NULLABLE"} for name, kind in COLUMNS.items())]
ASKED += [{"name": name, "type": kind, "mode": "REPEATED"} for name, kind in {"stops": "INTEGER"}.items()]
SETTINGS = settings.load(ENVIRON | {"RETRAINING_TRAINER_PACKAGE": "gs://my-retraining/trainer+tf{framework}.tar.gz"})
PRICES = load_prices(settings.include_path())
RUN = "20131120t030000z-0123456789ab"
FIXED = {
    "run_key": RUN,
    "run_uri": f"gs://my-retraining/late/runs/{RUN}",
    "results_uri": f"gs://my-retraining/jobs/late/runs/{RUN}",
    "spec_sha256": "0" * 64,
}
BEFORE = d.Signature(inputs={"distance": "float32"}, outputs={"score": "float32"})
AFTER = d.Signature(inputs={"distance": "float32", "carrier": "string"}, outputs={"score": "float32"})
CHANGE = changes_digest(signature_changes(BEFORE, AFTER))
"""Digest of the change of the signature in a duel."""
OWN_GATE = TeamFunction(call=lambda _run: (True, "all is well"), sha256="0" * 64)
SAMPLE = "my-project.retraining.sample"
SMALL = {"carrier", "distance"}
HOUR = timedelta(hours=1)


class Consequences:
    """What follows from one spec; what cannot be told of it is told by the words of the refusal."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec

    def of(self) -> Mapping[str, Callable[[], object]]:
        """Return all kinds by name, the quick ones first."""
        names = ("plan", "statements", "jobs", "trials", "checks", "gates", "signals", "monitor", "rollout", "people")
        return {name: getattr(self, name) for name in (*names, "scored", "warnings", "dags")}

    @functools.cached_property
    def _plan(self) -> d.Plan:
        made = make_plan(
            self.spec,
            settings=SETTINGS,
            prices=PRICES,
            frozen_set_sql="SELECT 1" if self.spec.data.golden_query else None,
            columns=[column["name"] for column in ASKED],
            assertions={item.name: "SELECT 1" for item in self.spec.data.assertions},
            gates={gate.name: OWN_GATE for gate in self.spec.evaluation.gates},
        )
        return made.model_copy(update=FIXED)

    @functools.cached_property
    def _snapshot(self) -> d.Snapshot:
        return make_snapshot(self._plan, schema=ASKED)

    def plan(self) -> object:
        """Return the plan, and what a person reads of it."""
        late = AS_OF + timedelta(days=8)
        forgotten = _told(lambda: windows.require_within_time_travel(self.spec.data, AS_OF, late, "late"))
        return self._plan.model_dump(exclude={"spec"}), planning.explain(self._plan), forgotten

    def statements(self) -> object:
        """Return every statement of a run with its parameters, and what is loaded before them."""
        plan, data = self._plan, self.spec.data
        return (
            snapshot.render_snapshot_sql(plan),
            snapshot.query_parameters(plan),
            snapshot.render_fingerprint_sql(plan),
            snapshot.render_left_out_sql(plan) if data.event_time else None,
            statistics.render_statistics_sql(plan, self._snapshot),
            frozen_set.render_frozen_set_sql(plan) if data.golden_query else None,
            image_objects.render_objects_table_sql(plan),
            image_objects.object_parameters(plan.spec),
            source_files.build_load(plan) if data.files else None,
        )

    def jobs(self) -> object:
        """Return the jobs of a run with the documents that they read."""
        plan = self._plan
        return (
            requests.export_job(plan, self._snapshot),
            requests.training_job(plan),
            requests.evaluation_job(plan, small_decision.CHAMPION),
            multivariate.job_request(plan, "gs://my-retraining/late/monitors/m", SETTINGS),
        )

    def trials(self) -> object:
        """Return whether this run searches, and the jobs of the search."""
        plan, section = self._plan, self.spec.tuning
        if section is None:
            return None
        study = small_study.study(
            7, small_study.trial(1, 0.7), small_study.trial(2, 0.8, 0.02), small_study.trial(3, 0.6, 0.03)
        )
        asked = decision.decide(plan, [study], None)
        wanted = asked.model_copy(update={"recalled": warm_start.repeated_trials(section, [study])})
        return (
            asked,
            tuning.search_job(plan, wanted, section.parameters),
            tuning.repetition_job(plan, wanted) if wanted.recalled else None,
            [
                warm_start.contains(parameter, value)
                for parameter in section.parameters
                for value in (0.2, 0.05, "small")
            ],
        )

    def checks(self) -> object:
        """Return what is found in data with a mistake of each kind, beside an earlier run's."""
        plan = self._plan
        if set(self.spec.feature_names) != SMALL:
            return [str(each) for each in mismatches(plan.spec, self._snapshot.columns)]
        if self.spec.label.kind == "regression":
            return shifted_days(self.spec, statistics.build_days(plan, number_model.rows(means=(20, 23))))
        rows = statistics_rows(rows={"train": 300, "validation": 40, "test": 150}, rate=0.45, nulls=50)
        found = statistics.build_statistics(plan, self._snapshot, rows)
        before = statistics.build_statistics(plan, self._snapshot, statistics_rows(carriers={"UA": 0.5, "ZZ": 0.5}))
        tested = [
            row | {"value": "NEW"} if row["split"] == "test" and row["value"] == "AA" else row
            for row in statistics_rows()
        ]
        now = statistics.build_statistics(plan, self._snapshot, tested)
        earlier = check_data(plan, self._snapshot, before)
        volumes = (earlier.model_copy(update={"findings": ()}),)
        history = History(
            checks=volumes,
            uris=("gs://b/checks.json",),
            snapshot=self._snapshot,
            snapshot_uri="gs://b/snapshot.json",
            statistics=before,
            statistics_uri="gs://b/statistics.json",
        )
        lost = self._snapshot.model_copy(update={"columns": self._snapshot.columns[:-1]})
        return (
            check_data(plan, self._snapshot, found, history),
            check_data(plan, self._snapshot, now, history),
            list(schema_changes(plan, lost, history)),
            list(vanished_categories(plan, now, history)),
        )

    def gates(self) -> object:
        """Return the verdicts of a duel that is won narrowly, and of one whose slices and signature changed."""
        plan, ours, theirs = (
            self._plan,
            small_decision.scores(0.62, UA=(150, 0.6)),
            small_decision.scores(0.61, UA=(150, 0.7)),
        )
        champion = small_decision.CHAMPION.model_copy(update={"signature": BEFORE})
        if self.spec.label.kind == "regression":
            request = requests.evaluation_job(plan, champion).request
            verdict = gates.decide(plan, request, number_model.evaluation(plan), small_decision.DIGESTS)
            return verdict.model_dump(exclude={"inputs"})
        made = (
            small_decision.decide(plan, ours, theirs, deviation=0.001),
            small_decision.decide(plan, ours, theirs, rows=900),
            small_decision.decide(plan, ours, theirs, champion=champion, signature=AFTER),
        )
        return [verdict.model_dump(exclude={"inputs"}) for verdict in made]

    def signals(self) -> object:
        """Return what the monitor sees in requests that drifted, failed and were slow."""
        spec = self.spec
        served = Answered(requests=210, errors=3, p50_ms=20.0, p95_ms=60.0, p99_ms=90.0)
        calm = replace(served, errors=0, p50_ms=10.0, p95_ms=20.0, p99_ms=50.0)
        windows_ = ServedWindows(now={"1": served}, earlier={"1": calm}, names={"1": "version 3"})
        found = d.Multivariate.parse((EXAMPLES / "multivariate__drifted.json").read_bytes())
        return (
            judge_serving(spec, windows_),
            judge_age(spec, AS_OF - 100 * HOUR, AS_OF),
            judge_sources(spec, {"my-project.source.rows": AS_OF - 100 * HOUR}, AS_OF, "my-project"),
            self._shifts() if set(spec.feature_names) == SMALL else None,
            attributions.judge_attributions(
                spec,
                d.RequestAttributions.parse((EXAMPLES / "attributions__moved.json").read_bytes()),
                d.AttributionBaseline.parse((EXAMPLES / "attribution_baseline__two_features.json").read_bytes()),
            ),
            multivariate.judge_classifier(spec, found, asked=True),
            multivariate.compared_columns(spec),
            LogWindows.before(spec, AS_OF),
            large_batch(spec),
            allowed_drop(spec),
        )

    def _shifts(self) -> object:
        counts = {"carrier": {"UA": 110, "AA": 100}, "distance": {"1": 40, "5": 170}}
        log = read_requests([*request_log.counted(counts), *request_log.counted(counts, asked_in="earlier")], [])
        train = statistics.build_statistics(self._plan, self._snapshot, statistics_rows()).splits["train"]
        return (
            list(judge_shifts(self.spec, train, log, (), request_log.CHAMPION_ID)),
            judge_log(self.spec, log, 300),
            judge_log(self.spec, read_requests([], []), 300),
        )

    def monitor(self) -> object:
        """Return the policy, whether a classifier is trained, and whether a day is new."""
        spec, day = self.spec, (AS_OF - 24 * HOUR).date()
        counts = {day - timedelta(days=back): 60 if back == 0 else 100 for back in range(9)}
        tables = spec.triggers.new_day.tables if spec.triggers.new_day else ()
        counted = Counted(rows={table.name: counts for table in tables})
        seen = d.Signals.parse((EXAMPLES / "signals__skew.json").read_bytes())
        return (
            policy.policy_of(spec),
            orders.reach(policy.policy_of(spec)),
            new_day.decide_new_day(spec, AS_OF, day, counted, earlier=[], newest=None) if tables else None,
            [new_day.rows_query(table, f"my-project.{table.name}", "DATE", day) for table in tables],
            multivariate.reason_to_skip(spec, seen, asked=False, lately=False),
            multivariate.render_sample_sql(self._plan, self._snapshot, seen, SAMPLE, (), with_run_table=True),
        )

    def rollout(self) -> object:
        """Return what serves, on which machines, who is asked before, and how a ramp's steps are judged."""
        plan, section = self._plan, self.spec.deployment
        container = serving.container_of(plan)
        begun = rollouts.begun(plan, small_rollout.REGISTRATION, None, small_rollout.before(), "run", small_rollout.NOW)
        asked = [
            approvals.reason_not_to_ask(plan, champion, warned)
            for champion in (None, small_rollout.version("3"))
            for warned in ([], ["few rows"])
        ]
        return (
            serving.container_spec(container, "0" * 64),
            serving.model_uri(plan, "gs://b/m"),
            deployments.machine_of(section),
            begun,
            asked,
            _told(lambda: deployments.require_kind(plan, "e", dedicated=False, private=False, given=False)),
            self._ramp() if section.canary else None,
            self._shadow() if section.shadow else None,
            self._explanations() if section.explanations else None,
        )

    def _explanations(self) -> object:
        counted = statistics.build_statistics(self._plan, self._snapshot, statistics_rows())
        inputs = {feature.name: "string" for feature in self.spec.features}
        return explanation_spec(self._plan, counted, d.Signature(inputs=inputs, outputs={"score": "float32"}))

    def _shadow(self) -> object:
        section, now = self.spec.deployment.shadow, small_rollout.NOW
        assert section is not None
        logged = tuple(
            shadow.LoggedRequest(at=now - timedelta(minutes=minutes), instances=({"i": minutes},), answers=("0.5",))
            for minutes in (90, 1)
        )
        done = ShadowTraffic(until=now, last_sent=now)
        return render_shadow_sql("my-project.data.log", "30", now, section), shadow.begun(
            section, done, shadow.Log(requests=logged)
        )

    def _ramp(self) -> object:
        canary, start = self.spec.deployment.canary, small_rollout.NOW
        assert canary is not None
        percent = canary.percent[0]
        step = _step(start, minutes=4 * canary.bake_minutes, requests=(40, 700), percent=percent)
        known = start, start + timedelta(days=9)
        minutes = ramp_gates.next_looks(canary, step.model_copy(update={"looks": ()}), known)
        timed = Measured(latencies=Latencies(bounds=(5.0, 9.0), counts=(4, 6)))
        return (
            ramp.next_percent(canary, {"30": 100}, ()),
            minutes[-1],
            ramp_gates.judge(canary, (step,)),
            ramp_gates.judge(canary, (_step(start, minutes=60, requests=(3, 700), percent=percent),)),
            ramp_gates.look(canary, minutes[0], Measured(), timed, 9.0),
        )

    def people(self) -> object:
        """Return who is told, and what a person reads on the model's card."""
        read = {
            kind: KINDS[kind].parse((EXAMPLES / f"{kind}__{name}.json").read_bytes()) for kind, name in CARD.items()
        }
        card, score = model_card(self._plan, *read.values()), score_model(self.spec, Facts(day=AS_OF.date()))
        return recipients(self.spec.notify, SETTINGS), card.licence, score

    def scored(self) -> object:
        """Return the plan of a scoring, its job, and where its form may point."""
        section = self.spec.scoring
        if section is None:
            return None
        scorer = scoring.Scorer(
            version=small_rollout.version("3", "champion"),
            trained=self._plan,
            report=small_decision.REPORT.model_copy(update={"signature": AFTER}),
            service_account=self.spec.service_account,
        )
        asked = scoring.AskedScoring(
            as_of=windows.AsOf(value=AS_OF, source="logical_date"),
            trigger=d.Trigger(kind="scheduled", reason="cron"),
            dag_id="score__late",
            dag_run_id="r",
        )
        made = scoring.build_scoring_plan(
            asked,
            model="late",
            scoring=section,
            sql=SQL if section.query else None,
            scorer=scorer,
            settings=SETTINGS,
            prices=PRICES,
        )
        rows = d.ScoringInput.parse((EXAMPLES / "scoring_input__text_key.json").read_bytes())
        forms = ({"table": "source.rows"}, {"destination": "scores.late"})
        places = [_told(lambda form=form: self._places(form)) for form in forms]
        return made, scoring.explain(made), scoring_requests.batch_job(made, rows), places

    def _places(self, form: Mapping[str, str]) -> None:
        scoring.require_places(self.spec, scoring.with_params(self.spec, form), SETTINGS)

    def warnings(self) -> object:
        """Return what `check-models` says beside errors."""
        return model_check.warnings_of(self.spec, SQL)

    def dags(self) -> object:
        """Return the DAGs as the scheduler stores them."""
        from retraining.dags import monitor, retrain, score
        from tests.support.airflow_release import DagSerialization

        made = [retrain.retrain_dag(self.spec), monitor.monitor_dag(self.spec)]
        made += [score.score_dag(self.spec, self.spec.scoring)] if self.spec.scoring else []
        return [DagSerialization.to_dict(dag) for dag in made]


def differing(one: ModelSpec, other: ModelSpec) -> str | None:
    """Return the first kind of consequence in which two specs differ; None: nothing follows from the difference."""
    before, after = Consequences(one).of(), Consequences(other).of()
    return next((name for name in before if _known(one, name, before[name]) != _told(after[name])), None)


_KNOWN: dict[tuple[str, str], object] = {}
"""Consequences by spec and name: most examples change the same file."""


def _known(spec: ModelSpec, name: str, consequence: Callable[[], object]) -> object:
    key = (repr(spec), name)
    if key not in _KNOWN:
        _KNOWN[key] = _told(consequence)
    return _KNOWN[key]


def _step(start: datetime, *, minutes: int, requests: tuple[int, int], percent: int) -> d.RampStep:
    """A step in which the new version errs and is slow a little more often."""
    new, old = (
        d.LookCounts(requests=count, errors=count // 30, timed=count, slow=share * count)
        for count, share in zip(requests, (0.12, 0.1), strict=True)
    )
    looks = [
        d.RampLook(
            start=start + timedelta(minutes=index),
            end=start + timedelta(minutes=index + 1),
            new=new,
            old=old,
            slow_ms=14.0,
        )
        for index in range(min(minutes, 200))
    ]
    shift = d.AnswerShift(new=500, old=500, promised=0.07, promised_low=0.05, before=0.07, before_low=0.05)
    return d.RampStep(percent=percent, start=start, looks=tuple(looks), answers=shift)


def _told(consequence: Callable[[], object]) -> object:
    try:
        return consequence()
    except RetrainingError as error:
        return str(error)
