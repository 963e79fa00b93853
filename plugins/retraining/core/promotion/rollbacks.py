"""Going back to an earlier version: to which one, against what it is refused, and the document of what came of it.

In: what a person asked for, the versions of the registry, the model's rollout. Out: a version, a document, words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from retraining.core.documents import Registration, Rollback, Rollout, SmokeTest, Trigger
from retraining.core.errors import ContractError, PlanError, suggest
from retraining.core.naming.storage import rollback_time
from retraining.core.naming.vertex import CHAMPION, PREVIOUS, ResourceName, unversioned
from retraining.core.promotion.rollouts import CLOCKS_DIFFER, is_open
from retraining.core.promotion.versions import Version

LONGEST_REASON = 500
STAY = "stay"
"""In the place of a version: the champion stays, and only the pause of retraining changes."""


@dataclass(frozen=True, kw_only=True)
class AskedRollback:
    """What was asked for. `name` is the rollback's, `asked` when; `to` is `previous`, `stay` or a version's id.

    `from_version` is the id of the version that errs; None: whichever serves, or is being deployed.
    """

    model: str
    to: str
    reason: str
    name: str
    dag_run_id: str
    trigger: Trigger
    asked: datetime
    from_version: str | None = None


def require_versions(model: str, versions: Sequence[Version], known: Sequence[str]) -> None:
    """Refuse a model that has no version.

    Args:
        model: As it was asked for.
        versions: Of it, in the registry.
        known: Names of the models that have a spec.

    Raises:
        PlanError: It has none.
    """
    if not versions:
        way_out = suggest(model, known) or "Trigger again with the name of a model that was deployed"
        expected = f"a model with versions, of: {', '.join(known) or 'none yet'}"
        raise PlanError("Param model", f"{model!r}, which has no version in the registry", expected, way_out)


def choose_target(asked: AskedRollback, versions: Sequence[Version], last: Rollout | None, now: datetime) -> Version:
    """Return the version to go back to.

    Args:
        asked: By a person.
        versions: All of the model.
        last: The last change of the champion; not open.
        now: A change of a later time than this says nothing: its clock was wrong.

    Raises:
        PlanError: There is none such, it serves already, or another rollback has just gone back.
    """
    where = f"Param to of {asked.model}"
    ids = {version.version_id: version for version in versions}
    aliases = {alias: version for version in versions for alias in version.aliases}
    champion = aliases.get(CHAMPION)
    went_back = last is not None and last.rollback and champion is not None and champion.version_id == last.version_id
    if asked.to == PREVIOUS and last is not None and went_back and asked.asked < last.changed <= now + CLOCKS_DIFFER:
        found = f"rollback {last.rollback} went back to version {last.version_id} after this one was triggered"
        raise PlanError(where, found, "no other one", "To go back further trigger again with a version's id")
    target = aliases.get(PREVIOUS) if asked.to == PREVIOUS else ids.get(asked.to)
    if target is None and asked.to == PREVIOUS:
        others = ", ".join(sorted(ids, key=len)) or "none"
        raise PlanError(where, "no version has the alias previous", f"a version's id, of: {others}", "Name one of them")
    if target is None:
        expected = f"previous, or one of: {', '.join(sorted(ids))}"
        raise PlanError(where, repr(asked.to), expected, suggest(asked.to, [PREVIOUS, *ids]) or "Name one of them")
    if target is champion:
        raise PlanError(where, f"version {target.version_id} is champion", "another version", "Nothing is to be done")
    if not target.run_key:
        expected = "a version that retrain__… registered: its run's plan says on which machines it serves"
        raise PlanError(target.version_name, "no run of this system made it", expected, "Name another version")
    return target


def require_target(
    asked: AskedRollback, versions: Sequence[Version], known: Sequence[str], champion: Version | None
) -> None:
    """Refuse what names nothing, before a deployment under way is ended for it; the champion serves after that.

    Raises:
        PlanError: The model has no version, or none is that one.
    """
    require_versions(asked.model, versions, known)
    if asked.to not in (PREVIOUS, champion.version_id if champion else None):
        choose_target(asked, versions, None, asked.asked)


def require_serving(asked: AskedRollback, last: Rollout | None, champion: Version | None) -> None:
    """Refuse to go back from a version that serves no more, and is not being deployed.

    Raises:
        PlanError: It is not the champion.
    """
    under_way = last.version_id if last is not None and (is_open(last) or last.stopped_by == asked.name) else None
    now = champion.version_id if champion else None
    if asked.from_version not in (None, now, under_way):
        where, found = f"Param from_version of {asked.model}", f"version {asked.from_version} serves no more"
        raise PlanError(where, found, f"the champion, version {now}" if now else "a champion", "Nothing is to be done")


def require_model_files(target: Version, *, there: bool) -> None:
    """Refuse a version whose model is gone.

    Raises:
        ContractError: It is.
    """
    if not there:
        way_out = "Trigger again with a version whose model is there"
        raise ContractError(target.version_name, f"no model in {target.model_uri}", "its SavedModel", way_out)


def stops(asked: AskedRollback, last: Rollout | None, champion: Version | None) -> bool:
    """Return whether all that was asked for is done: a deployment under way was brought back to what was before it."""
    if last is None or is_open(last) or last.stopped_by != asked.name:
        return False
    if asked.from_version not in (None, last.version_id):
        return False  # another version errs than the one whose deployment was stopped: it serves on
    return asked.to in (PREVIOUS, champion.version_id if champion else None)


def reason_of_stop(asked: AskedRollback) -> str:
    """Return why a deployment ended, for its run's document."""
    return f"rollback {asked.name} stopped its deployment" + (f" ({asked.reason})" if asked.reason else "")


def registration_of(model: str, target: Version | Rollout) -> Registration:
    """Return the version to go back to as its run's registration has it."""
    return Registration(
        model=model,
        run_key=target.run_key,
        model_name=unversioned(target.version_name),
        version_id=target.version_id,
        version_name=target.version_name,
        aliases=(),
    )


def stopped(asked: AskedRollback, last: Rollout, endpoint_name: str) -> Rollback:
    """Return the document of a rollback that brought a deployment back.

    Args:
        asked: By a person.
        last: The deployment.
        endpoint_name: Of the model, where it has one.
    """
    before = last.before
    message = f"The deployment of version {last.version_id} is stopped, "
    message += f"version {before.champion_id} serves as before." if before.champion_id else "nobody serves, as before."
    moved = endpoint_name if last.endpoint else None
    return _document(asked, before.champion_name, last.version_name, message, stopped=True, endpoint_name=moved)


def gone_back(asked: AskedRollback, done: Rollout, endpoint_name: str) -> Rollback:
    """Return the document of a rollback to a version.

    Args:
        asked: By a person.
        done: What was done.
        endpoint_name: Of the model, where it has one.
    """
    before = done.before
    message = f"Version {done.version_id} {'serves all requests as' if done.endpoint else 'is'} champion"
    message += f", after version {before.champion_id}." if before.champion_id else "."
    names = done.version_name, before.champion_name
    moved = endpoint_name if done.endpoint else None
    return _document(asked, *names, message, done.smoke_test, endpoint_name=moved)


def version_id(version_name: str | None) -> str | None:
    """Return the id of a version by its whole name."""
    return ResourceName.parse(version_name).version if version_name else None


def explain_since(done: Rollback) -> str:
    """Return what a run has to say that was ordered before a rollback and deploys after it."""
    reason = f": {done.reason.strip().rstrip('.')}" if done.reason.strip() else ""
    before, now = version_id(done.from_version_name), version_id(done.version_name)
    what = f"from version {before} to {f'version {now}' if now else 'none'}" if before else done.message.rstrip(".")
    return (
        f"This run was ordered before somebody went back {what} ({rollback_time(done.name):%Y-%m-%d %H:%M} UTC, "
        f"{done.trigger.reason}{reason}). What it trained may have the same fault, and it replaces "
        f"{f'version {now}' if now else 'nothing'} where it is promoted. To hold it back trigger the DAG rollback with "
        f"model {done.model} and to previous, which ends its deployment, and with pause_until for those that follow."
    )


def _document(
    asked: AskedRollback,
    version_name: str | None,
    from_version_name: str | None,
    message: str,
    smoke_test: SmokeTest | None = None,
    *,
    stopped: bool = False,
    endpoint_name: str | None,
) -> Rollback:
    return Rollback(
        model=asked.model,
        name=asked.name,
        dag_run_id=asked.dag_run_id,
        trigger=asked.trigger,
        to=asked.to,
        reason=asked.reason,
        stopped=stopped,
        version_name=version_name,
        from_version_name=from_version_name,
        smoke_test=smoke_test,
        endpoint=endpoint_name is not None,
        endpoint_name=endpoint_name,
        message=message,
    )
