"""The file `include/budgets.yaml`: what retraining may cost in a month, of one model, of a team, and of all together.

In: the file that whoever pays writes, beside the models' files. Out: the budgets that a model's runs are held to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from retraining.core.errors import SpecError, suggest
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.section import Section
from retraining.core.spec.section_file import find_section

FILE = "budgets.yaml"
Usd = Annotated[float, Field(gt=0, le=10**9)]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A sum of US dollars a month, and whose: a model's, a team's (all models of an owner) or everybody's (empty)."""

    usd: float
    model: str = ""
    owner: str = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        if self.model:
            return f"the month's budget of {self.model}"
        return f"the month's budget of team {self.owner}" if self.owner else "the month's budget of all models"


class Budgets(Section):
    """US dollars a month (UTC) at list prices. What is not named has no budget."""

    currency: Literal["USD"] = "USD"
    """That of the price lists; there is no other."""
    total: Usd | None = None
    """Of all models together."""
    teams: dict[Annotated[str, Field(min_length=1, max_length=100)], Usd] = Field(default_factory=dict)
    """Of all models with one `owner`."""
    models: dict[str, Usd] = Field(default_factory=dict)
    """Of single models."""
    each_model: Usd | None = None
    """Of each model that `models` does not name."""
    warn_at: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of a budget from which on each run's log and the Models page warn."""
    over: Literal["refuse", "warn"] = "refuse"
    """What happens to a run that would go over a budget; the Param `over_budget` lets one pass."""

    def of(self, spec: ModelSpec) -> Iterator[Budget]:
        """Yield the budgets that a model's runs are held to: its own first."""
        own = self.models.get(spec.name, self.each_model)
        if own is not None:
            yield Budget(usd=own, model=spec.name)
        if spec.owner in self.teams:
            yield Budget(usd=self.teams[spec.owner], owner=spec.owner)
        if self.total is not None:
            yield Budget(usd=self.total)

    def explain(self, owners: dict[str, str]) -> str:
        """Return a line: how many models have a budget, of a catalogue of these, with the owner of each."""
        own = [name for name in owners if name in self.models or self.each_model]
        total = f", {self.total:.2f} USD of all" if self.total else ""
        return (
            f"{FILE}: a month's budget of {len(own)} of {len(owners)} models, of {len(self.teams)} teams{total}; "
            f"what goes over {'is refused' if self.over == 'refuse' else 'is warned of'}"
        )

    def require_known(self, models: dict[str, str]) -> None:
        """Refuse names that nothing has.

        Args:
            models: Owner by model.

        Raises:
            SpecError: A model or a team is named that there is not.
        """
        for kind, named, known in (("models", self.models, set(models)), ("teams", self.teams, set(models.values()))):
            for name in named:
                if name not in known:
                    expected = f"one of: {', '.join(sorted(known))}"
                    raise SpecError(f"{FILE}, {kind}", f"{name!r}", expected, suggest(name, sorted(known)))


def load_budgets(include: Path) -> Budgets | None:
    """Return what the file says; None: there is none, and nothing has a month's budget.

    Raises:
        SpecError: Anything is wrong with it; the message has all findings, with lines.
    """
    return find_section(include / FILE, Budgets)
