"""A run of another stage as a form names it, and the DAG run that takes its version over: made here, and read back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retraining.core.documents.document import RUN_KEY_PATTERN
from retraining.core.errors import PlanError
from retraining.core.settings import STAGE_PATTERN

_FORM = re.compile(rf"({STAGE_PATTERN})/({RUN_KEY_PATTERN.strip('^$')})(?: to ({STAGE_PATTERN}))?")
TEXT_PATTERN = f"^{_FORM.pattern}$"
PARAM = "taken_from"
"""Of the form."""
EXAMPLE = "staging/20131120t030000z-0123456789ab"


@dataclass(frozen=True, kw_only=True)
class StageRun:
    """A run of a stage, `staging/20131120t030000z-0123456789ab`, with ` to production` where it says for whom.

    A run of a third stage refuses one that is for another. No address is in it: the stages' file has those.
    """

    stage: str
    run_key: str
    target: str = ""

    @classmethod
    def parse(cls, text: str, where: str) -> StageRun:
        """Read what a form has.

        Args:
            text: Of the form.
            where: Names its field.

        Raises:
            PlanError: It is no such text.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            expected = f"a stage and the key of a run there, such as {EXAMPLE}"
            raise PlanError(where, repr(text[:300]), expected, "Correct it")
        return cls(stage=found[1], run_key=found[2], target=found[3] or "")

    @property
    def dag_run_id(self) -> str:
        """Id of the DAG run that takes the version over: Airflow has each once."""
        return f"promote__{self.stage}__{self.run_key}"

    def __str__(self) -> str:
        """Return it as a form has it."""
        return f"{self.stage}/{self.run_key}" + (f" to {self.target}" if self.target else "")
