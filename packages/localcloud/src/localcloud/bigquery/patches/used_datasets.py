"""Patches `datasets.delete` of a dataset with something in it: it answers 404, for which a client takes it as gone.

https://cloud.google.com/bigquery/docs/error-messages#errortable: 400 `resourceInUse`.
"""

from __future__ import annotations

import functools

from localcloud.untyped import Untyped


def apply(context: Untyped) -> None:
    """Say that the dataset is in use."""
    from bqemulator.domain.errors import NotFoundError, ResourceInUseError

    original = context.catalog.delete_dataset

    @functools.wraps(original)
    def delete(project: str, dataset: str, **kwargs: Untyped) -> Untyped:
        try:
            return original(project, dataset, **kwargs)
        except NotFoundError:
            if context.catalog.get_dataset(project, dataset) is None:
                raise
            raise ResourceInUseError(f"Dataset {project}:{dataset} is still in use") from None

    context.catalog.delete_dataset = delete
