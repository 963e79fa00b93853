"""A rollout of the small model's run: version 4 after version 3."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from retraining.core.documents import Before, Registration, Rollout
from retraining.core.naming import vertex
from retraining.core.naming.run_keys import RunKey
from retraining.core.promotion import rollouts
from retraining.core.promotion.versions import Version
from tests.support.small_model import make_plan

PLAN = make_plan()
MODEL = vertex.model_name("p", "r", PLAN.model)
NOW = datetime(2013, 11, 20, 4, tzinfo=UTC)
MINE = vertex.deployed_model_id(PLAN.run_key)
OLD_RUN = str(RunKey.of(datetime(2013, 11, 19, 3, tzinfo=UTC), "old"))


def version(version_id: str, *aliases: str, run_key: str = OLD_RUN) -> Version:
    """Version of the model, as the registry has it."""
    labels = {vertex.RUN_LABEL: run_key} if run_key else {}
    return Version(model_name=MODEL, version_id=version_id, aliases=aliases, labels=labels, artifact_uri="gs://b/m")


REGISTRATION = Registration(
    model=PLAN.model,
    run_key=PLAN.run_key,
    model_name=MODEL,
    version_id="4",
    version_name=f"{MODEL}@4",
    aliases=("challenger",),
)


def before(**changes: Any) -> Before:
    """What was so: version 3 was champion, version 2 the one before it."""
    return Before.model_validate(
        {
            "champion_id": "3",
            "champion_name": f"{MODEL}@3",
            "previous_id": "2",
            "default_id": "3",
            "traffic": {"30": 100},
            **changes,
        }
    )


def rollout(state: str = "going", **changes: Any) -> Rollout:
    """The rollout in a state."""
    made = rollouts.begun(PLAN, REGISTRATION, None, before(), "dag-run", NOW)
    return made.model_copy(update={"state": state, **changes})
