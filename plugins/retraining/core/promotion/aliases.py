"""Which alias goes where: by the verdict, with the office of champion, and back.

In: versions as the registry has them. Out: aliases to give and to take away, in order; nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retraining.core.documents import Decision, Plan, Rollout
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
    """Return the aliases that a run's new version gets. An older challenger does not take the alias from a newer one.

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
    if challenger and challenger.run_key and RunKey.parse(challenger.run_key).as_of > plan.as_of:
        return ()
    return (CHALLENGER, DEFAULT) if champion is None and DEFAULT not in version.aliases else (CHALLENGER,)


def changes_of_office(champion: Version) -> list[str]:
    """Return what follows for the other aliases of a version that is champion now, as the registry takes it."""
    wishes = [DEFAULT] if DEFAULT not in champion.aliases else []
    return [*wishes, f"-{CHALLENGER}"] if CHALLENGER in champion.aliases else wishes


def becomes_previous(rollout: Rollout, holder: Version | None) -> bool:
    """Tell whether the holder of the alias champion is the one that this rollout replaces."""
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


def _back(alias: str, holder: Version, to: Version | None) -> AliasChange:
    """Give an alias to its earlier holder; take it away where there was none."""
    return AliasChange(version=holder, alias=alias, taken=True) if to is None else AliasChange(version=to, alias=alias)
