"""The section `triggers` of a model's YAML: what starts a retraining beside the schedule, a person and the monitor."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from retraining.core.spec.scoring import Table
from retraining.core.spec.section import ColumnName, Fraction, Section

AssetName = Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]{0,198}[!-~])?$")]
AssetUri = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9+.-]{0,40}://[!-~]{1,400}$")]


class SourceAsset(Section):
    """An asset of Airflow that a DAG of the source updates, by the name and the uri that it has there.

    Where that DAG gives only one of them, Airflow takes it for the other too, and so does this.
    """

    name: AssetName | None = None
    """As the DAG that updates the asset has it; `null`: as `uri`."""
    uri: AssetUri | None = None
    """As the DAG that updates the asset has it; `null`: as `name`. One of the two is needed."""

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        if self.name is None and self.uri is None:
            raise ValueError("neither name nor uri: write them as the DAG has them that updates the asset")
        return self

    @property
    def key(self) -> tuple[str, str]:
        """Name and uri, as Airflow has them."""
        return str(self.name or self.uri), str(self.uri or self.name)


class DatedTable(Section):
    """A table of the source, and the column with the time of its rows."""

    name: Table
    """A table or view."""
    time: ColumnName
    """Column with the rows' time: TIMESTAMP, DATETIME or DATE; best the one by which the table is partitioned."""


class NewDay(Section):
    """Tables whose complete new day starts a retraining, as `monitor__<model>` finds them."""

    tables: Annotated[tuple[DatedTable, ...], Field(min_length=1, max_length=10)]
    """Tables that must all have the day."""
    after_hours: Annotated[float, Field(ge=0, le=168)] = 1
    """Hours after the midnight from which a run may use the day (`data.label_lag_days`); no look before that."""
    min_share: Fraction = 0.5
    """A day is complete with this share of the median rows of the seven days before."""
    max_gb: Annotated[float, Field(gt=0, le=10_000)] = 1
    """Gigabytes: a count that would read more is not made."""


class Triggers(Section):
    """What starts a retraining beside the schedule, a person and the monitor's signals."""

    assets: Annotated[tuple[SourceAsset, ...], Field(max_length=20)] = ()
    """Assets of Airflow that DAGs of the source update: an event of any of them starts a run."""
    new_day: NewDay | None = None
    """Whether the source has a [complete new day](monitoring.md#new-data), which starts a run once: the monitor looks.
    Not with `split: hash`, nor with `monitoring.schedule: null`."""

    @field_validator("assets")
    @classmethod
    def _are_distinct(cls, value: tuple[SourceAsset, ...]) -> tuple[SourceAsset, ...]:
        for index, what in enumerate(("name", "uri")):
            seen: set[str] = set()
            for asset in value:
                if asset.key[index] in seen:
                    raise ValueError(f"{what} {asset.key[index]!r} stands twice: Airflow has one asset of it")
                seen.add(asset.key[index])
        return value
