"""Moving an endpoint's traffic to a new version, one safe step after the other; each may be repeated.

In: what the endpoint and the registry say now, and how far an earlier poke came (`RolloutState`). Out: the deployment
document, or None while something is waited for. Nothing becomes champion before the endpoint itself gave the model's
own answers; what cannot be completed is brought back by `Return`.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence

from retraining.core.documents import (
    Before,
    Deployment,
    Golden,
    Plan,
    Registration,
    Report,
    Rollout,
    SmokeTest,
    Staging,
)
from retraining.core.documents.deployment import RolloutState as RolloutPhase
from retraining.core.errors import ConflictError, ContractError, RetrainingError
from retraining.core.naming import bigquery, storage, trust, vertex
from retraining.core.promotion import aliases, deployments, ramp, rollouts, smoke_tests
from retraining.core.promotion.versions import Version
from retraining.hooks.endpoints import Endpoint, EndpointOptions
from retraining.hooks.operations import Operation
from retraining.hooks.ports import CloudPort
from retraining.hooks.session import is_outage
from retraining.operators.deployment.rollout_end import (
    clear_staging,
    complete_rollout,
    require_promoted,
    roll_back,
    state_before,
    take_aliases_back,
    undeploy_replaced,
)
from retraining.operators.deployment.rollout_ramp import Ramp
from retraining.operators.deployment.rollout_shadow import ShadowReplay
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState, move_traffic
from retraining.operators.deployment.version_upload import drop_duplicates
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
LOOK_INTERVAL_S = 1.0


class RolloutSteps:
    """The deployment of one run's version.

    Args:
        cloud: The hooks.
        plan: The run.
        registration: Its version.
        report: With the smoke requests; None, of a rollback alone: it is not there any more, and nothing is asked.
        state: Of the model's rollout, as it was read.
        rollback: Name of the rollback that this is; None: the run deploys its new version.
    """

    def __init__(
        self,
        cloud: CloudPort,
        plan: Plan,
        registration: Registration,
        report: Report | None,
        state: RolloutState,
        rollback: str | None = None,
    ) -> None:
        self._cloud = cloud
        self._plan = plan
        self._registration = registration
        self._report = report
        self._rollback = rollback
        self._state = state
        self._id = vertex.deployed_model_id(plan.run_key)
        self._began = False

    def advance_rollout(self, champion: Version | None, dag_run: str) -> Deployment | None:
        """Go as far as this poke allows.

        Args:
            champion: The version with that alias now, before this rollout has begun; None: there is none yet.
            dag_run: Label of the DAG run.

        Raises:
            ContractError: The endpoint does not answer as the saved model does; the previous traffic is back.
            ConflictError: Somebody else changed the champion, or is at work; what was changed is brought back.
            JobError: The deployment failed, or a service did not answer for too long.
        """
        try:
            done = self._go_on(champion, dag_run)
        except Exception as error:  # Google's, and the network's; what does not pass by itself is raised again
            if not is_outage(error):
                raise
            self._wait_for(error)
            return None
        if self._state.current.outage is not None:
            self._state.change_rollout(outage=None)
        return done

    def _wait_for(self, error: Exception) -> None:
        """Note since when a service does not answer, and wait for it; nothing is judged meanwhile, nothing begun anew.

        Raises:
            JobError: It has been away for too long: what was before is brought back.
        """
        rollout = self._state.found
        if rollout is None or rollout.state in ("returning", "done", "ended"):
            raise error  # nothing is half done that could go back: the task sleeps over it
        now, message = self._state.moment(), f"{type(error).__name__}: {error}"
        LOGGER.warning("%s; the rollout waits", message)
        if rollout.outage is None:
            self._state.change_rollout(outage=now)
        endless = rollouts.endless_outage(self._state.current, now, message)
        if endless is None and rollout.state == "going" and not self._rollback:
            endpoint = self._cloud.endpoints.get(self._plan.model)
            if endpoint is not None and endpoint.traffic.get(self._id):  # nobody has compared its answers yet
                move_traffic(self._cloud, self._state, endpoint, functools.partial(_rest, self._state.current))
                endless = rollouts.endless_outage(self._state.current, now, message, rollouts.ANSWERS_WITHIN)
        if endless is not None:
            self._go_back(endless)
            raise endless from error

    def _go_on(self, champion: Version | None, dag_run: str) -> Deployment | None:
        if not self._is_open(champion, dag_run):
            return None
        if not self._state.current.endpoint:
            return self._take_office()
        endpoint = self._cloud.endpoints.get(self._plan.model)
        if endpoint is None:
            gone = self._gone()
            self._go_back(gone)
            raise gone
        try:
            return self._take_steps(endpoint, champion)
        except RetrainingError:
            raise
        except Exception as error:  # Google's; what follows somebody's deletion of the endpoint is said as such
            if self._cloud.endpoints.get(self._plan.model) is None:
                raise self._gone() from error
            raise

    def _take_office(self) -> Deployment | None:
        """Move the aliases alone: whoever scores by `champion` uses the version from then on."""
        if self._state.current.state == "proven":
            self._or_go_back(self._promote)
        if self._state.current.state != "done" or not undeploy_replaced(self._cloud, self._state):
            return None
        return deployments.deployed(self._plan, self._state.current, None)

    def _gone(self) -> ConflictError:
        return ConflictError(self._plan.model, "the endpoint is gone", "it to be there", "The next try makes it")

    def _take_steps(self, endpoint: Endpoint, champion: Version | None) -> Deployment | None:
        if self._state.current.state == "staging":
            self._try_on_staging()
        if self._state.current.state == "going" and (deployed := self._deploy_version(endpoint)):
            self._or_go_back(lambda: self._prove_version(deployed))
        if self._state.current.state == "ramping":
            self._or_go_back(lambda: self._ramp_up(endpoint, champion))
        if self._state.current.state == "returning":
            roll_back(self._cloud, self._state)
        if self._state.current.state not in ("proven", "done"):
            return None
        if self._state.current.state == "proven":
            self._or_go_back(self._promote)
        if not undeploy_replaced(self._cloud, self._state):
            return None
        return deployments.deployed(self._plan, self._state.current, endpoint.name)

    def _is_open(self, champion: Version | None, dag_run: str) -> bool:
        """Say whether this run's rollout goes forward; begin it where none is open."""
        rollout = self._state.found
        if rollout is None or not rollouts.is_open(rollout):
            if self._report is not None and self._wants_endpoint(champion):
                smoke_tests.require_requests(self._report, storage.document_uri(self._plan.run_uri, "report"))
            self._begin_rollout(champion, dag_run)
        elif rollout.state == "returning":
            LOGGER.warning("an earlier try ended (%s): what was before is brought back first", rollout.reason)
            roll_back(self._cloud, self._state)
            return False
        else:
            times = rollouts.right_times(rollout, self._state.moment())
            self._state.change_rollout(dag_run=dag_run, **times)  # also a sign of life
        return True

    def _begin_rollout(self, champion: Version | None, dag_run: str) -> None:
        """Write down what is so now, before anything is changed."""
        model, now, earlier = self._plan.model, self._state.moment(), self._state.found
        wanted = self._wants_endpoint(champion)
        endpoint = self._endpoint() if wanted else self._cloud.endpoints.get(model)
        self._state.require_unchanged()
        drop_duplicates(self._cloud, model, self._plan.run_key)  # of an upload that ended after another had counted
        again = champion is not None and champion.version_id == self._registration.version_id
        if again and rollouts.is_complete(earlier, self._plan.run_key, endpoint.traffic if endpoint else {}):
            self._state.change_rollout(state="done", reason="", dag_run=dag_run)
            return
        before = state_before(self._cloud, self._plan, endpoint, champion, again=again)
        begun = rollouts.begun(
            self._plan, self._registration, earlier, before, dag_run, now, self._rollback, endpoint=wanted
        )
        if self._plan.spec.deployment.staging and not (self._rollback or again):
            begun = rollouts.staged(begun, self._cloud.endpoints.name_of(vertex.staging_of(model)))
        self._state.begin_rollout(begun)
        self._began = True

    def _wants_endpoint(self, champion: Version | None) -> bool:
        """Return whether traffic moves too; of a rollback as the run of who is gone back from wanted it."""
        plan = self._plan
        if self._rollback and champion is not None and champion.run_key:
            folder = storage.run_uri(self._cloud.settings.bucket, plan.model, champion.run_key)
            plan = Record(self._cloud.artifacts, folder).find_document(Plan) or plan
        return plan.spec.deployment.endpoint

    def _endpoint(self) -> Endpoint:
        """Return the model's endpoint; made where it is missing, with the share of logged requests that is wanted."""
        model, deployment = self._plan.model, self._plan.spec.deployment
        log_table = bigquery.request_log_table(self._plan.project, self._plan.dataset, model)
        options = EndpointOptions(dedicated=deployment.dedicated_endpoint, sampling=deployment.request_log_sampling)
        endpoint = self._cloud.endpoints.ensure(model, log_table, {vertex.MODEL_LABEL: model}, options)
        trust.require_own_endpoint(endpoint.name, endpoint.labels.get(vertex.MODEL_LABEL, model), model)
        if not self._rollback:  # which takes the endpoint as it is: it must always be possible
            given = self._cloud.settings.placement.endpoint_of(model) is not None
            kind = {"dedicated": endpoint.dedicated, "private": endpoint.private, "given": given}
            deployments.require_kind(self._plan, endpoint.name, **kind)
            if endpoint.sampling not in (None, options.sampling):
                self._state.require_unchanged()
                self._cloud.endpoints.set_sampling(endpoint, options.sampling)
        return endpoint

    def _try_on_staging(self) -> None:
        """Deploy the version where no customer asks it, compare its answers, take it off again; then begin for real.

        As far as this poke allows. The endpoint stays: without a deployed model it costs nothing.
        """
        tried = self._state.current.staging
        if tried is None or tried.passed is None:
            model = self._plan.model
            endpoint = self._cloud.endpoints.ensure(vertex.staging_of(model), None, {vertex.MODEL_LABEL: model})
            deployed = self._deploy_version(endpoint)
            if deployed is None:
                return
            self._or_go_back(lambda: self._ask_on_staging(deployed))
        if self._state.current.state == "staging" and not self._replay_log():
            return
        if self._state.current.state == "staging" and clear_staging(self._cloud, self._state):
            self._state.change_rollout(state="going", operation=None, asked=self._state.moment(), starts=0)
            self._began = True

    def _replay_log(self) -> bool:
        """Send logged requests to the version where no customer asks it; True: that is done, or not asked for."""
        section, judged = self._plan.spec.deployment.shadow, list[bool]()
        endpoint = self._cloud.endpoints.get(vertex.staging_of(self._plan.model)) if section else None
        if section is None or endpoint is None:
            return True
        signature = self._report.signature if self._report else None
        replay = ShadowReplay(self._cloud, self._plan, self._state, section, signature)
        self._or_go_back(lambda: judged.append(replay.advance(endpoint)))
        return judged == [True]

    def _ask_on_staging(self, endpoint: Endpoint) -> None:
        """Compare the version's answers with the saved model's; one that is wrong ends the rollout, and is no error."""
        smoke_requests = self._report.golden if self._report else ()
        tried = Staging(endpoint_name=endpoint.name, passed=True)
        move_traffic(self._cloud, self._state, endpoint, lambda _: {self._id: 100})
        try:
            smoke_test = self._ask_smoke_requests(endpoint, smoke_requests, 100)
        except ContractError as error:
            reason = smoke_tests.refusal(error)
            failed = tried.model_copy(update={"passed": False, "message": reason})
            self._state.change_rollout(state="returning", reason=reason, staging=failed)
            return
        self._state.change_rollout(staging=tried.model_copy(update={"smoke_test": smoke_test}))

    def _deploy_version(self, endpoint: Endpoint) -> Endpoint | None:
        """Start the deployment, or go on watching it; None when the machines are not ready at the end of this poke."""
        until = self._cloud.clock.monotonic() + self._cloud.settings.watch_s
        while True:
            # The operation first: once it is done the endpoint has the model, if it ever will.
            operation = self._operation(endpoint)
            seen = self._cloud.endpoints.read_endpoint(endpoint.name)
            if self._id in seen.deployed:
                return seen
            if (operation is None or operation.done) and self._start_deployment(seen, operation):
                continue
            if endless := rollouts.endless_start(self._state.current, endpoint.name, self._state.moment()):
                self._go_back(endless)
                raise endless
            if self._cloud.clock.monotonic() >= until:
                LOGGER.info("%s is being deployed; the next poke goes on", self._registration.version_name)
                return None
            self._cloud.clock.sleep(LOOK_INTERVAL_S)

    def _operation(self, endpoint: Endpoint) -> Operation | None:
        """Find the deployment under way: the one noted, or one that is running."""
        if name := self._state.current.operation:
            return self._cloud.endpoints.operation(name)
        running = self._cloud.endpoints.running_operations(endpoint)
        if running:
            LOGGER.info("%s is at work on the endpoint: waiting for it", running[0].name)
        return running[0] if running else None

    def _start_deployment(self, endpoint: Endpoint, operation: Operation | None) -> bool:
        """Ask for the deployment where nothing is under way: the first time, or because nothing came of the last.

        False: another worker asks for it just now.
        """
        current = self._state.current
        if operation is not None and operation.error:
            error = rollouts.failed_start(endpoint.name, operation.error)
            self._go_back(error)
            raise error
        now = self._state.moment()
        if not self._began and rollouts.is_claimed(current, now):
            LOGGER.info("another worker asked for the deployment at %s: waiting for it", current.asked)
            return False
        if fruitless := rollouts.fruitless_starts(current, endpoint.name):
            self._go_back(fruitless)
            raise fruitless
        if current.operation:
            LOGGER.warning("%s is done, and the endpoint does not have the model: once more", current.operation)
        self._state.change_rollout(operation=None, asked=now, starts=current.starts + 1)
        self._began = False
        try:
            started = self._cloud.endpoints.start_deploy(
                endpoint,
                self._registration.version_name,
                self._plan.run_key,
                deployments.machine_of(self._plan.spec.deployment),
            )
        except Exception as error:  # raised again, but for a conflict: the endpoint is another one since it was read
            conflict = isinstance(error, ConflictError)
            if conflict or is_outage(error):
                self._state.change_rollout(starts=max(current.starts, 1))  # what was not asked for brought nothing
            if not conflict:
                raise
            LOGGER.info("%s", error)
            self._began = True
            return False
        if started is not None:
            LOGGER.info("%s: deploying %s", started.name, self._registration.version_name)
            self._note_operation(started.name)
        return True

    def _note_operation(self, name: str) -> None:
        """Write down what is under way; where the rollout ended meanwhile, nobody will wait for it."""
        try:
            self._state.change_rollout(operation=name)
        except OvertakenError:
            mine, now = self._state.current, self._state.read_rollout()
            if rollouts.is_superseded(mine, now) or not rollouts.is_open(now):
                LOGGER.warning("%s is cancelled: the rollout was ended meanwhile", name)
                self._cloud.endpoints.cancel_operation(name)
            raise

    def _or_go_back(self, step: Callable[[], None]) -> None:
        """Take a step that changes what people meet; on any error bring all back to what was before."""
        try:
            step()
        except OvertakenError:
            raise
        except Exception as error:  # whatever it was, people must not stay with half a change; it is raised again
            if not is_outage(error):  # which says nothing about the version, and is waited for
                self._go_back(error)
            raise

    def _prove_version(self, endpoint: Endpoint) -> None:
        """Compare the version's answers with the saved model's, with little traffic where another one serves.

        A version that is gone back to served before: it has all traffic at once, and is asked then.
        """
        before = self._note_traffic_before(endpoint)
        percent = 100 if self._rollback else ramp.first_percent(before.traffic)
        traffic = ramp.with_version(before, self._id, percent)
        passed: RolloutPhase = "proven" if self._rollback else "ramping"
        if self._report is None:
            self._move_traffic(endpoint, traffic)
            self._state.change_rollout(state=passed)
            return
        instances, start = len(self._report.golden), self._state.moment()
        # Written before it is asked: whatever dies, the monitor knows which requests were no customer's.
        until = start + rollouts.TEST_TAKES
        windows = rollouts.with_smoke_request(self._state.current, traffic, start, until, instances)
        self._state.change_rollout(smoke_requests=windows)
        self._move_traffic(endpoint, traffic)
        smoke_test = self._ask_smoke_requests(endpoint, self._report.golden, traffic[self._id])
        windows = rollouts.with_smoke_request(self._state.current, traffic, start, self._state.moment(), instances)
        self._state.change_rollout(state=passed, smoke_test=smoke_test, smoke_requests=windows)

    def _note_traffic_before(self, endpoint: Endpoint) -> Before:
        """Write down what the traffic is without the version, where a person changed it while the machines came."""
        before = self._state.current.before
        traffic = ramp.without_version(self._state.current, endpoint.traffic, endpoint.deployed) or {}
        if traffic != {key: share for key, share in before.traffic.items() if share}:
            LOGGER.warning("somebody changed the traffic since the rollout began: it is %s now", traffic)
            versions = self._cloud.registry.list_versions(self._plan.model)
            own = ramp.own_models(endpoint.deployed, versions, before.champion_name)
            before = before.model_copy(update={"traffic": traffic, "others": ramp.persons(traffic, own)})
            self._state.change_rollout(before=before)
        return before

    def _move_traffic(self, endpoint: Endpoint, traffic: Mapping[str, int]) -> None:
        """Give the version its share, if the rest is as it was noted."""
        mine = self._state.current

        def choose(seen: Endpoint) -> Mapping[str, int]:
            noted = {key: share for key, share in mine.before.traffic.items() if share}
            if (ramp.without_version(mine, seen.traffic, seen.deployed) or {}) != noted:
                raise ramp.changed_traffic(seen.name, seen.traffic, noted)
            return traffic

        move_traffic(self._cloud, self._state, endpoint, choose)

    def _ask_smoke_requests(self, endpoint: Endpoint, smoke_requests: Sequence[Golden], percent: int) -> SmokeTest:
        """Ask until the version, which has some percent of the traffic, gave enough answers."""
        clock = self._cloud.clock
        instances = smoke_tests.instances(smoke_requests, self._plan.spec.features)
        until, asked, tests = clock.monotonic() + smoke_tests.ASK_FOR.total_seconds(), 0, list[SmokeTest]()
        while len(tests) < smoke_tests.ENOUGH:
            if asked == smoke_tests.MOST_ASKED or clock.monotonic() >= until:
                raise smoke_tests.too_few_answers(endpoint.name, len(tests), asked, self._id, percent)
            answer, asked = self._cloud.endpoints.predict(endpoint, instances), asked + 1
            if answer.deployed_model_id == self._id:
                tests.append(self._require_same_answers(endpoint, answer.predictions, smoke_requests))
            elif percent == 100:  # the service takes a moment to send requests another way
                clock.sleep(LOOK_INTERVAL_S)
        found = smoke_tests.worst_of(tests, asked)
        LOGGER.info(
            "smoke test at %d %%: %d of %d answers by %s, largest difference %.2g",
            *(percent, found.answers, found.asked, self._id, found.max_abs_error),
        )
        return found

    def _require_same_answers(
        self, endpoint: Endpoint, predictions: Sequence[object], smoke_requests: Sequence[Golden]
    ) -> SmokeTest:
        spec = self._plan.spec
        return smoke_tests.require_same_answers(
            endpoint.name,
            predictions,
            smoke_requests,
            numbers=spec.label.kind == "regression",
            precision=spec.training.precision,
        )

    def _ramp_up(self, endpoint: Endpoint, champion: Version | None) -> None:
        """Let the version's share grow; a gate that fails turns back, and is no error."""
        seen = self._cloud.endpoints.read_endpoint(endpoint.name)
        Ramp(self._cloud, self._plan, self._state).advance(seen, champion)

    def _promote(self) -> None:
        """Make the old champion `previous` first; then move `champion`, by compare-and-set, and `default` with it."""
        registry, model, before = self._cloud.registry, self._plan.model, self._state.current.before
        version = registry.find_by_run(model, self._plan.run_key)
        if version is None:
            raise ConflictError(
                self._registration.version_name,
                "the version is gone",
                "it to be there",
                "Clear register and what follows it: it is registered again",
            )
        require_promoted(self._cloud, model, version, self._state.uri)
        endpoint = self._cloud.endpoints.get(model)
        if self._state.current.endpoint and (endpoint is None or not endpoint.traffic.get(self._id)):
            raise ramp.changed_traffic(self._plan.model, endpoint.traffic if endpoint else {}, {self._id: 100})
        mine = self._state.current
        try:
            holder = registry.find_by_alias(model, vertex.CHAMPION)
            if holder is None or holder.version_id != version.version_id:
                if holder is not None and aliases.becomes_previous(mine, holder):
                    self._state.require_unchanged()
                    registry.merge_aliases(holder, [vertex.PREVIOUS])
                self._state.require_unchanged()
                version = registry.move_alias(model, vertex.CHAMPION, version, before.champion_id)
            complete_rollout(self._cloud, version, self._state)
        except OvertakenError:
            take_aliases_back(self._cloud, mine, self._state)
            raise

    def _go_back(self, error: Exception) -> None:
        """Turn to the way back, which is the only one from here on, whoever takes it; the error says why."""
        try:
            self._state.change_rollout(state="returning", reason=str(error) or type(error).__name__)
            roll_back(self._cloud, self._state)
        except OvertakenError:
            LOGGER.warning("somebody else goes on with the rollout: nothing is brought back here")
        except Exception:  # the first error is the one to raise; the next poke or the teardown goes on with this
            LOGGER.exception("what was before could not be brought back yet")


def _rest(rollout: Rollout, seen: Endpoint) -> Mapping[str, int]:
    """Return an endpoint's traffic without a rollout's version; as it is where nobody else is there."""
    rest = ramp.without_version(rollout, seen.traffic, seen.deployed)
    return seen.traffic if rest is None else rest
