"""Which alias goes where: by the verdict, with the office of champion, and back.

In: versions as the registry has them. Out: aliases to give and to take away, in order; nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retraining.core.documents import Decision, Plan, Rollout
from retraining.core.errors import ContractError
from retraining.core.naming.run_keys import RunKey
from retraining.core.naming.vertex import CHALLENGER, CHAMPION, DEFAULT, PREVIOUS, alias_as_of
from retraining.core.promotion.versions import Version


@dataclass(frozen=True, kw_only=True)
class AliasChange:
    """An alias that a version gets, or (`taken`) loses."""

    version: Version
    alias: str
    taken: bool = False

    @property
    def wish(self) -> str:
        """The change as the registry takes it: `-alias` takes one away."""
        return f"-{self.alias}" if self.taken else self.alias


def aliases_of_verdict(
    plan: Plan, decision: Decision, version: Version, challenger: Version | None, champion: Version | None
) -> tuple[str, ...]:
    """Return the aliases that a run's version gets. An older challenger does not take the alias from a newer one.

    Vertex AI gives `default` to the first version, whatever its verdict. While there is no champion, which has it
    from then on, a challenger takes it over.

    Args:
        plan: The run.
        decision: Its verdict.
        version: What it registered.
        challenger: The version with that alias now.
        champion: The version with that alias now.
    """
    if decision.verdict == "record":
        return (alias_as_of(plan.as_of),)
    if decision.verdict == "reject":
        return ()
    if CHAMPION in version.aliases:  # its registration was written before, and deleted since
        return ()
    if challenger and challenger.run_key and RunKey.parse(challenger.run_key).as_of > plan.as_of:
        return ()
    return (CHALLENGER, DEFAULT) if champion is None and DEFAULT not in version.aliases else (CHALLENGER,)


def changes_of_office(champion: Version) -> list[str]:
    """Return what follows for the other aliases of a version that is champion now, as the registry takes it."""
    wishes = [DEFAULT] if DEFAULT not in champion.aliases else []
    return [*wishes, f"-{CHALLENGER}"] if CHALLENGER in champion.aliases else wishes


def becomes_previous(rollout: Rollout, holder: Version | None) -> bool:
    """Return whether the holder of the alias champion is the one that this rollout replaces."""
    return holder is not None and holder.version_id == rollout.before.champion_id


def changes_back(rollout: Rollout, versions: Iterable[Version]) -> list[AliasChange]:
    """Return how the aliases that a rollout moved go where they were; one that somebody else moved meanwhile stays.

    Each is looked at for itself: the rollout may have died after any of them.

    Args:
        rollout: With what was before.
        versions: All of the model.
    """
    by_id = {version.version_id: version for version in versions}
    before = rollout.before
    mine, old = by_id.get(rollout.version_id), by_id.get(before.champion_id or "")
    changes: list[AliasChange] = []
    if mine is not None:
        if CHAMPION in mine.aliases:
            changes.append(_back(CHAMPION, mine, old))
        default = by_id.get(before.default_id or "")
        if DEFAULT in mine.aliases and default is not None and default is not mine:
            changes.append(_back(DEFAULT, mine, default))
        if not rollout.rollback and not any(CHALLENGER in version.aliases for version in by_id.values()):
            changes.append(AliasChange(version=mine, alias=CHALLENGER))
    if old is not None and PREVIOUS in old.aliases and before.previous_id != old.version_id:
        changes.append(_back(PREVIOUS, old, by_id.get(before.previous_id or "")))
    return changes


def changes_of_latecomer(mine: Rollout, now: Rollout | None, versions: Iterable[Version]) -> list[AliasChange]:
    """Return how the aliases that an ended rollout moved after its end go where they belong by what is stored now.

    Only those that are where it put them: what another one moved since stays.

    Args:
        mine: The rollout, as the worker that moved them knew it.
        now: As it is stored; None: it is gone.
        versions: All of the model.
    """
    versions = list(versions)
    if now is None or is_same(mine, now):
        return changes_back(mine, versions)
    by_id = {version.version_id: version for version in versions}
    forward = now.state == "done" or (now.state == "ended" and not now.reason)
    before = now.before
    belongs = {
        CHAMPION: now.version_id if forward else before.champion_id,
        PREVIOUS: before.champion_id if forward else before.previous_id,
        DEFAULT: now.version_id if forward else before.default_id,
    }
    put = {CHAMPION: mine.version_id, PREVIOUS: mine.before.champion_id, DEFAULT: mine.version_id}
    changes = []
    for alias, version_id in put.items():
        holder, to = by_id.get(version_id or ""), by_id.get(belongs[alias] or "")
        if holder is None or alias not in holder.aliases or holder is to or (to is None and alias == DEFAULT):
            continue
        changes.append(_back(alias, holder, to))
    return changes


def is_same(one: Rollout, other: Rollout) -> bool:
    """Return whether two rollouts are the same change of a champion: of one run, or one rollback."""
    return (one.run_key, one.rollback) == (other.run_key, other.rollback)


def without_verdict(where: str, version: Version, way_out: str) -> ContractError:
    """Return why a version is not made champion.

    Args:
        where: What names it.
        version: That its own run did not promote.
        way_out: For whoever reads it.
    """
    made = f"run {version.run_key}, whose decision did not promote it" if version.run_key else "no run of this system"
    return ContractError(
        where,
        f"version {version.version_id} to be champion, which was made by {made}",
        "a version whose own run's decision.json has the verdict promote",
        way_out,
    )


def _back(alias: str, holder: Version, to: Version | None) -> AliasChange:
    """Give an alias back to its earlier holder; take it away where there was none."""
    return AliasChange(version=holder, alias=alias, taken=True) if to is None else AliasChange(version=to, alias=alias)
