"""What Airflow's OpenLineage provider asks of a task, where it is installed and switched on; nobody else asks."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Literal

from retraining.operators.record.run_record import Record

DagSteps = Literal["run", "scoring", "rollback", "monitor"]
LOGGER = logging.getLogger(__name__)


class LineageMixin:
    """A task that can say what it read and wrote, from the documents of its run.

    `lineage_steps` names the steps of its DAG, which are imported when they are asked for, not with the DAGs.
    `lineage_record` is set once the task has opened its run's folder. There is no method for a task's start, which
    knows no more than its end: the provider would call it in a process of its own before the task has read anything.
    A failed task is asked by the same method, and reports what it came to.
    """

    task_id: str
    lineage_steps: ClassVar[DagSteps] = "run"
    lineage_record: Record | None = None

    def get_openlineage_facets_on_complete(self, task_instance: object) -> Any:
        """Return the task's `OperatorLineage`; None, and a warning in its log, when there is none: no task fails here.

        The name and the argument are the provider's.
        """
        del task_instance
        if self.lineage_record is None:
            return None
        try:
            from retraining.core.lineage.steps import STEPS, Documents

            steps, record = STEPS[self.lineage_steps], self.lineage_record
            found = [document for kind in steps.kinds_read(self.task_id) if (document := record.find_document(kind))]
            lineage = steps.describe(self.task_id, Documents(found))
            if lineage is None:
                return None
            # The provider is no dependency: it is imported when it asks.
            from retraining.operators.airflow.openlineage import to_openlineage

            return to_openlineage(lineage)
        except Exception as error:  # whatever it is: the task's work is done
            LOGGER.warning("no lineage: %s: %s", type(error).__name__, error, exc_info=True)
            return None
