"""A model's whole specification.

In: what `include/models/<name>.yaml` says, and a run's overrides. Out: a frozen, validated `ModelSpec`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from retraining.core.errors import PlanError, suggest
from retraining.core.metrics import IN_UNIT, METRICS, Metric
from retraining.core.placement import LABEL_KEY, LABEL_VALUE, label_problem
from retraining.core.settings import EMAIL_PATTERN
from retraining.core.spec.chaining import Jobs, chaining_problem
from retraining.core.spec.cluster import resolve_tier, strategy_problem
from retraining.core.spec.data import Data, DataChecks
from retraining.core.spec.deployment import Deployment
from retraining.core.spec.evaluation import Evaluation
from retraining.core.spec.explanations import explained_problem, unexplained_feature
from retraining.core.spec.feature_patterns import FeatureEntry, FeaturePattern, resolve_entries
from retraining.core.spec.features import (
    MAX_FEATURES,
    OUTPUT_NAMES,
    AuxiliaryLabel,
    Cross,
    Feature,
    Label,
    cross_problem,
    deciding_metrics,
    is_empty,
)
from retraining.core.spec.machine_pool import PoolName
from retraining.core.spec.messages import explain
from retraining.core.spec.monitoring import Monitoring
from retraining.core.spec.notify import Notify, RunPage
from retraining.core.spec.reviews import Review
from retraining.core.spec.scoring import Scoring
from retraining.core.spec.search_spaces import SEARCH_SPACES, with_search_space
from retraining.core.spec.section import Cron, Section
from retraining.core.spec.training import Training
from retraining.core.spec.triggers import Triggers
from retraining.core.spec.tuning import Tuning, reported_metrics
from retraining.core.spec.yaml_file import SpecText
from retraining.core.untyped import YamlValues

ServiceAccount = Annotated[str, StringConstraints(max_length=254, pattern=f"^{EMAIL_PATTERN}$")]

LabelKey = Annotated[str, StringConstraints(pattern=f"^{LABEL_KEY}$")]
LabelValue = Annotated[str, StringConstraints(pattern=f"^{LABEL_VALUE}$")]


def _not_ours(labels: dict[str, str]) -> dict[str, str]:
    """Refuse labels by which the software finds what it made, and more than fit."""
    if problem := label_problem(labels):
        raise ValueError(problem)
    return labels


def _without_endpoint(value: object) -> object:
    """Return `deployment: null` as what it means."""
    return {"endpoint": False} if value is None else value


class ModelSpec(Section):
    """What to train, from what, how to judge, deploy and watch it."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    """The file's name, and that of the DAGs, the Vertex AI model and the folder in the bucket. Lower case, digits and
    `_`, but not at the end; none of the bucket's own folders (`gcloud`, `gsutil`, `jobs`, `leases`, `maintenance`,
    `notifications`, `packages`, `spending`, `wakes`)."""
    description: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    """What Airflow shows."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "retraining"
    """Airflow's owner of the tasks."""
    licence: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """Licence of the model, such as `Apache-2.0`, for its [card](deployment.md#the-model-card)."""
    tags: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...], Field(max_length=50)
    ] = ()
    """Further tags of the DAGs."""
    schedule: Cron | None = None
    """Any that Airflow takes, UTC; `null`: only by hand, by the monitor, or as a backfill."""
    triggers: Triggers = Field(default_factory=Triggers)
    """[What else starts a run](monitoring.md#triggers), beside the schedule, a person and the monitor."""
    budget_usd: Annotated[float, Field(gt=0, le=10**9)] | None = None
    """A run whose jobs may cost more at list prices, one attempt of each until its timeout and on demand, is refused by
    `plan`. So is one that needs something without a list price, by its name; the Param `over_budget` lets one run pass.
    `null`: nothing is refused, an [unknown price](operations.md#costs) is *unknown*."""
    priority: Annotated[int, Field(ge=1, le=10, exclude=True)] = 5
    """Among the models, 10 first: whose tasks Airflow starts where many wait, and whose jobs begin where [a region's
    quota](operations.md#quotas-of-a-region) is full. Of the file alone, as `notify`."""
    labels: Annotated[dict[LabelKey, LabelValue], AfterValidator(_not_ours), Field(exclude=True)] = Field(
        default_factory=dict
    )
    """Labels of Google Cloud, `{cost_center: "4711"}`, of all that the model's tasks make: jobs, versions, endpoint,
    statements on BigQuery. [Costs](composer.md#keys-networks-labels-and-who-pays) are told apart by them. Of the file
    alone, as `notify`: what is there already keeps those it has."""
    service_account: Annotated[ServiceAccount | None, Field(exclude_if=lambda value: value is None)] = None
    """Whom the model's jobs run as, so that it may write [below its own folder
    alone](security.md#one-model-must-not-own-another). `null`: `RETRAINING_SERVICE_ACCOUNT`. A run's key does not
    depend on it."""
    machine_pool: Annotated[PoolName | None, Field(exclude_if=lambda value: value is None)] = None
    """Machines that stay between jobs, by [their file](operations.md#machine-pools) `include/pools/<name>.yaml`: while
    they are there, export, training and evaluation run on them and wait for no machines to start. A run's key does not
    depend on it. `null`: each job has machines of its own."""
    jobs: Annotated[Jobs, Field(exclude_if=lambda value: value == "separate")] = "separate"
    """Whether export, training and evaluation are jobs of their own, or `chained`: [one after the other on one
    machine](operations.md#chained-jobs), that of `training.cluster`, which starts once. A run's key does not depend on
    it."""
    data: Data
    entries: Annotated[tuple[FeatureEntry, ...], Field(alias="features", min_length=1, max_length=MAX_FEATURES)]
    """In the order of the model's signature."""
    crosses: Annotated[tuple[Cross, ...], Field(max_length=50, exclude_if=is_empty)] = ()
    """Features that are looked up [together too](#crosses)."""
    label: Label
    """What is predicted."""
    auxiliary_labels: Annotated[tuple[AuxiliaryLabel, ...], Field(max_length=20)] = ()
    """[Trained and answered beside the label](#auxiliary-labels), which alone decides."""
    training: Training
    tuning: Tuning | None = None
    """Search for hyperparameters; `null`: none, and no task `tune`."""
    evaluation: Evaluation
    deployment: Annotated[Deployment, BeforeValidator(_without_endpoint)] = Field(default_factory=Deployment)
    monitoring: Monitoring = Field(default_factory=Monitoring)
    scoring: Scoring | None = None
    report: RunPage = Field(default_factory=RunPage)
    """What [the run's page](evaluation.md#what-the-page-shows) shows of single examples."""
    notify: Annotated[Notify, Field(exclude=True)] = Field(default_factory=Notify)
    """Who is told of what. Of the file alone: no document keeps it, and no run is another one for it."""
    reviews: Annotated[tuple[Review, ...], Field(max_length=28, exclude=True)] = ()
    """Tests of the [ML Test Score](ml-test-score.md) that a person made by hand. Of the file alone, as `notify`."""

    model_config = ConfigDict(serialize_by_alias=True)

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the model reads, as far as the file names it; a plan's spec names all."""
        return tuple(entry for entry in self.entries if not isinstance(entry, FeaturePattern))

    @property
    def patterns(self) -> tuple[FeaturePattern, ...]:
        """The patterns among the features; a plan's spec has none."""
        return tuple(entry for entry in self.entries if isinstance(entry, FeaturePattern))

    def resolve(self, columns: Sequence[str]) -> tuple[YamlValues, dict[str, tuple[str, ...]]]:
        """Return the spec's values with a feature for each column that a pattern names, and which these are."""
        data = self.data
        labels = (label.name for label in (self.label, *self.auxiliary_labels))
        taken = {*labels, *(name for name in (data.key, data.event_time, data.weight) if name)}
        features, matched = resolve_entries(self.entries, columns, taken)
        values = self.model_dump(mode="json")
        return {**values, "features": [feature.model_dump(mode="json") for feature in features]}, matched

    @model_validator(mode="after")
    def _columns_are_distinct(self) -> Self:
        seen: set[str] = set()
        for name in self.feature_names:
            if name.lower() in seen:
                raise ValueError(f"feature {name!r} stands twice (BigQuery does not tell case apart)")
            seen.add(name.lower())
        roles = {"label.name": self.label.name, "data.key": self.data.key}
        for label in self.auxiliary_labels:
            if label.name.lower() in OUTPUT_NAMES:
                raise ValueError(
                    f"auxiliary_labels names {label.name!r}, which is an output of the label's own: give the column "
                    "another name in the query"
                )
            if f"auxiliary label {label.name}" in roles:
                raise ValueError(f"auxiliary_labels names {label.name!r} twice")
            roles[f"auxiliary label {label.name}"] = label.name
        optional = {"data.event_time": self.data.event_time, "data.weight": self.data.weight}
        roles |= {role: name for role, name in optional.items() if name}
        for role, name in roles.items():
            if name.lower() in seen:
                raise ValueError(f"{role} is {name!r}, which is also a feature: the model would see what it must not")
        if len({name.lower() for name in roles.values()}) < len(roles):
            raise ValueError(f"{', '.join(roles)} must be different columns")
        return self

    @model_validator(mode="after")
    def _jobs_fit_on_one_machine(self) -> Self:
        if self.jobs == "separate":
            return self
        replicas = 1 if self.tuning else self.data.export.replicas
        if problem := chaining_problem(self.training, replicas):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _reviews_are_of_different_tests(self) -> Self:
        tests = [review.test for review in self.reviews]
        if twice := next((test for test in tests if tests.count(test) > 1), None):
            raise ValueError(f"reviews names the test {twice!r} twice: leave the newest")
        return self

    @model_validator(mode="after")
    def _new_days_are_looked_for(self) -> Self:
        if self.triggers.new_day is None:
            return self
        if self.monitoring.schedule is None:
            raise ValueError(
                "triggers.new_day is looked for by the monitor, and monitoring.schedule is null: give that a cron "
                "expression"
            )
        if self.data.split == "hash":
            raise ValueError(
                "triggers.new_day is about days, which data.split: hash does not have: remove it, or name an asset of "
                "the source in triggers.assets"
            )
        return self

    @model_validator(mode="after")
    def _own_models_are_served(self) -> Self:
        if self.training.runtime.scoring_image and self.deployment.container is None:
            raise ValueError(
                "training.runtime.models is own, and TensorFlow's container cannot serve these: name one that can in "
                "deployment.container"
            )
        return self

    @model_validator(mode="after")
    def _keys_come_with_rows(self) -> Self:
        if not self.deployment.endpoint and self.monitoring.performance.request_keys is not None:
            raise ValueError(
                "monitoring.performance.request_keys is of an endpoint's requests, and deployment.endpoint is false: "
                "remove it, each row that is scored has its key"
            )
        return self

    @model_validator(mode="after")
    def _key_is_an_input(self) -> Self:
        key = self.data.key
        if not self.deployment.key_input:
            return self
        if self.training.runtime.scoring_image:
            raise ValueError(
                "deployment.key_input is of models that the trainer stores, and training.runtime.models is own: let "
                "its container give the key back, or name a table in monitoring.performance.request_keys"
            )
        if key.lower() in OUTPUT_NAMES or key.endswith("_bytes"):
            why = "TensorFlow Serving takes for base64" if key.endswith("_bytes") else "is an output of the label's own"
            raise ValueError(
                f"deployment.key_input needs another name of data.key than {key!r}, which {why}: rename it in the query"
            )
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        answers = [label.name for label in (self.label, *self.auxiliary_labels)]
        numbers = [feature.name for feature in self.features if feature.kind == "numeric"]
        for where, columns, known in (
            ("evaluation.slices", self.evaluation.slice_columns, self.feature_names),
            ("monitoring.drift.features", tuple(self.monitoring.drift.features), [*self.feature_names, *answers]),
            ("data.checks.max_null_fraction", tuple(self.data.checks.max_null_fraction), self.feature_names),
            ("data.checks.ranges", tuple(self.data.checks.ranges), numbers),
            ("deployment.explanations.baselines", self._explained_columns, self.feature_names),
        ):
            for column in columns:
                if column not in known and not any(item.columns_among([column], ()) for item in self.patterns):
                    raise ValueError(_unknown(where, column, known))
        return self

    @model_validator(mode="before")
    @classmethod
    def _searches_its_own_space(cls, values: object) -> object:
        return with_search_space(values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _searches_what_it_has(self) -> Self:
        if self.tuning is None:
            return self
        own = [parameter.name for parameter in SEARCH_SPACES.get(self.training.model, ())]
        names = list(dict.fromkeys([*self.training.hyperparameters, *own]))
        if not self.tuning.parameters:
            raise ValueError(
                f"tuning.parameters is missing, and architecture {self.training.model!r} has no space of its own; "
                f"expected one at least of: {', '.join(names) or 'what training.hyperparameters names'}. Name it with "
                f"bounds or values, or choose one of: {', '.join(sorted(SEARCH_SPACES))}"
            )
        for parameter in self.tuning.parameters:
            if parameter.name not in names:
                raise ValueError(_unknown("tuning.parameters", parameter.name, names))
        return self

    @model_validator(mode="after")
    def _tuned_by_what_is_reported(self) -> Self:
        reported = reported_metrics(self.label, self.auxiliary_labels)
        if self.tuning is None or self.tuning.metric in reported:
            return self
        if self.training.runtime.image is None:
            raise ValueError(_unknown("tuning.metric", self.tuning.metric, reported))
        if "goal" not in self.tuning.model_fields_set:
            raise ValueError(
                f"tuning.metric {self.tuning.metric!r} is of your own image: say tuning.goal, maximize or minimize"
            )
        return self

    @model_validator(mode="after")
    def _tunes_what_can_be_tuned(self) -> Self:
        for kind, action in self.monitoring.policy.actions:
            if action == "tune" and self.tuning is None:
                raise ValueError(
                    f"monitoring.policy.actions.{kind} is tune, and the file has no section tuning: add it, or write "
                    "retrain"
                )
        return self

    @model_validator(mode="after")
    def _files_have_the_columns(self) -> Self:
        files = self.data.files
        if files is None or self.data.query is not None:  # what a query gives, BigQuery knows
            return self
        baselines = tuple(self.evaluation.baselines.values())
        for where, columns in (
            ("features", tuple(self.feature_names)),
            ("label", (self.label.name,)),
            ("auxiliary_labels", tuple(label.name for label in self.auxiliary_labels)),
            ("evaluation.baselines", baselines),
            ("evaluation.group", (self.evaluation.group,) if self.evaluation.group else ()),
        ):
            for column in columns:
                if column not in files.names:
                    raise ValueError(f"data.files.columns: {_unknown(where, column, files.names)}")
        return self

    @model_validator(mode="after")
    def _judged_by_the_labels_kind(self) -> Self:
        evaluation, metric = self.evaluation, self.evaluation.metric
        if problem := _metric_problem(metric, self.label):
            raise ValueError(problem)
        if METRICS[metric].of_groups and evaluation.group is None:
            raise ValueError(
                f"evaluation.metric {metric} is of the order within a group: name in evaluation.group the column whose "
                "rows are ranked against each other"
            )
        if self.label.kind != "regression" and evaluation.baselines:
            raise ValueError(f"evaluation.baselines are of a regression, not of a {self.label.kind} label: remove them")
        if self.label.kind == "regression" and self.data.checks.label_rate != DataChecks().label_rate:
            raise ValueError(
                "data.checks.label_rate is of labels with classes; a regression has label.min and label.max: use those"
            )
        if self.label.kind != "binary" and evaluation.threshold is not None:
            raise ValueError(f"evaluation.threshold is of a binary label, not of a {self.label.kind} label: remove it")
        for name, column in evaluation.baselines.items():
            if column.lower() == self.label.name.lower():
                raise ValueError(f"evaluation.baselines.{name} is the label itself: name the column of what was known")
        if evaluation.group in (self.label.name, self.data.key):
            raise ValueError(
                f"evaluation.group is {evaluation.group!r}, the label or the key: name a column by whose values rows "
                "belong together"
            )
        searches = self.tuning is not None and self.tuning.search == "auto"
        if searches and metric in IN_UNIT and "max_drop" not in self.monitoring.performance.model_fields_set:
            raise ValueError(
                f"metric {metric} is in {METRICS[metric].unit}, of which monitoring.performance.max_drop has no "
                "default: say how much the champion may lose until hyperparameters are searched again"
            )
        return self

    @model_validator(mode="after")
    def _threshold_can_be_chosen(self) -> Self:
        own, source = self.training.runtime.scoring_image is not None, self.training.input
        if self.evaluation.needs_validation and own and source == "bigquery":
            raise ValueError(
                "evaluation.threshold is chosen on the validation split, of whose files an image's own models leave "
                "scores, and training.input bigquery has none: give a number, or set training.input to tfrecord"
            )
        return self

    @model_validator(mode="after")
    def _only_values_are_compared(self) -> Self:
        compared = ("numeric", "categorical")
        whole = {feature.name: feature.kind for feature in self.features if feature.kind not in compared}
        for where, columns in (
            ("evaluation.slices", self.evaluation.slice_columns),
            ("monitoring.drift.features", tuple(self.monitoring.drift.features)),
            ("data.checks.ranges", tuple(self.data.checks.ranges)),
        ):
            for column in columns:
                if column in whole:
                    what = f"{'an' if whole[column][0] in 'aeiou' else 'a'} {whole[column]}"
                    raise ValueError(f"{where} names {column!r}, which is {what}: it has no values to compare")
        return self

    @model_validator(mode="after")
    def _files_hold_the_features(self) -> Self:
        for feature in self.features:
            if feature.kind == "time" and self.training.input == "csv":
                raise ValueError(
                    f"training.input csv cannot hold {feature.name!r}, a time; expected tfrecord or bigquery. Change it"
                )
            if feature.kind not in ("image", "sequence"):
                continue
            what = "an image that the export resizes" if feature.kind == "image" else "a sequence"
            if self.training.input != "tfrecord":
                raise ValueError(
                    f"training.input {self.training.input} cannot hold {feature.name!r}, {what}; expected tfrecord. "
                    "Remove the key"
                )
            if feature.kind == "sequence" and self.data.layout.rows_per_record > 1:
                raise ValueError(
                    f"data.layout.rows_per_record {self.data.layout.rows_per_record} cannot hold {feature.name!r}, "
                    f"{what}; expected 1. Remove the key"
                )
        return self

    @model_validator(mode="after")
    def _crosses_are_of_features(self) -> Self:
        """Refuse other columns; of a file with patterns the plan is asked, which knows all features."""
        for cross in self.crosses if not self.patterns else ():
            if problem := cross_problem(cross, self.features):
                raise ValueError(problem)
        return self

    @property
    def _explained_columns(self) -> tuple[str, ...]:
        explanations = self.deployment.explanations
        return tuple(explanations.baselines) if explanations else ()

    @model_validator(mode="after")
    def _explains_values(self) -> Self:
        explanations = self.deployment.explanations
        problem = explained_problem(explanations, self.features) if explanations else None
        if problem:
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _attributions_can_be_asked(self) -> Self:
        """Refuse what nobody can ask: an endpoint is asked, by features whose values are changed one by one."""
        if self.monitoring.attributions is None:
            return self
        where = "monitoring.attributions"
        if not self.deployment.endpoint:
            raise ValueError(f"{where} asks an endpoint, and deployment.endpoint is false: remove {where}")
        if len(self.features) < 2:
            raise ValueError(f"{where} holds features against each other, and there is one: remove {where}")
        if problem := unexplained_feature(where, self.features):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _apps_look_categories_up(self) -> Self:
        hashed = [feature.name for feature in self.features if feature.kind == "categorical" and feature.hash_buckets]
        hashed = [f"hash_buckets of {', '.join(hashed)}"] if hashed else []
        hashed += ["crosses"] if self.crosses else []
        if hashed and self.training.export_lite:
            raise ValueError(
                f"{' and '.join(hashed)}, and training.export_lite: an app looks categories up in a file, "
                "which has no hashes. Remove one of them"
            )
        bags = [feature.name for feature in self.features if feature.kind == "bag"]
        if bags and self.training.export_lite:
            raise ValueError(
                f"{', '.join(bags)} of kind bag, and training.export_lite: TF Lite takes no text apart. "
                "Remove one of them"
            )
        times = [feature.name for feature in self.features if feature.kind == "time"]
        if times and self.training.export_lite:
            raise ValueError(
                f"{', '.join(times)} of kind time, and training.export_lite: TF Lite does not divide whole numbers of "
                "64 bits as parts of times need it. Remove one of them, or compute the parts in the query"
            )
        return self

    @model_validator(mode="after")
    def _frozen_images_stay(self) -> Self:
        objects = [feature.name for feature in self.features if feature.kind == "image" and feature.objects]
        if objects and self.data.golden_query:
            raise ValueError(
                f"data.golden_query freezes examples, and the images of {objects[0]!r} are objects, which nothing "
                "keeps as they are: remove it"
            )
        return self

    @model_validator(mode="after")
    def _augmentation_has_images(self) -> Self:
        if self.training.augmentation and all(feature.kind != "image" for feature in self.features):
            raise ValueError("training.augmentation changes images, and no feature is one: remove it")
        return self

    @model_validator(mode="after")
    def _strategy_fits_cluster(self) -> Self:
        cluster = resolve_tier(self.training.cluster)
        workers, servers = cluster.workers, cluster.parameter_servers
        assert cluster.chief is not None  # noqa: S101 - a tier and CUSTOM alike have one
        problem = strategy_problem(
            self.training.strategy, cluster.chief, workers.count if workers else 0, servers.count if servers else 0
        )
        if problem:
            raise ValueError(f"training.{problem}")
        return self

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the file's order."""
        return [feature.name for feature in self.features]

    def with_overrides(self, overrides: Mapping[str, Any]) -> ModelSpec:
        """Return another spec with some values replaced.

        Args:
            overrides: Dotted path to value, for example `{"data.window_days": 30,
                "training.hyperparameters": {"dropout": 0.2}}`. A mapping is merged into the one it meets.

        Raises:
            PlanError: A path is not in the spec, or the result is not a valid spec.
        """
        if not overrides:
            return self
        values = self.model_dump(mode="json")
        for path, value in overrides.items():
            if path.split(".")[0] in ("name", "owner", "tags", "schedule", "triggers"):
                raise PlanError(self.name, f"an override of {path!r}", "a value of this run", "Change the YAML file")
            _replace(values, path.split("."), value, self.name)
        try:
            return ModelSpec.model_validate(values)
        except ValidationError as error:
            finding = explain(error, SpecText(f"{self.name} with overrides", values, {}), ModelSpec)
            raise PlanError(
                finding.where, finding.found, finding.expected, finding.way_out or "Correct the Params"
            ) from error


def _replace(values: YamlValues, path: list[str], value: object, name: str) -> None:
    target = values
    for depth, part in enumerate(path[:-1]):
        step = target.get(part)
        if not isinstance(step, dict):
            raise PlanError(
                name, f"no {'.'.join(path[: depth + 1])!r}", f"one of: {', '.join(target)}", suggest(part, list(target))
            )
        target = step
    last = path[-1]
    free = path[:-1] in _FREE_KEYS
    if last not in target and not free:
        raise PlanError(name, f"no {'.'.join(path)!r}", f"one of: {', '.join(target)}", suggest(last, list(target)))
    old = target.get(last)
    if isinstance(old, dict) and isinstance(value, Mapping):
        target[last] = {**copy.deepcopy(old), **value}
    else:
        target[last] = value


_FREE_KEYS = (
    ["training", "hyperparameters"],
    ["data", "checks", "max_null_fraction"],
    ["data", "checks", "ranges"],
    ["data", "checks", "severity"],
    ["monitoring", "drift", "features"],
    ["evaluation", "baselines"],
)


def _metric_problem(metric: Metric, label: Label) -> str | None:
    """Return why models of a label cannot be compared by a metric; None: they can."""
    row, known = METRICS[metric], deciding_metrics(label)
    if metric in known:
        return None
    if row.of_amounts and label.kind in row.description:
        return f"evaluation.metric {metric} is of labels that are never below 0: say so by label.min: 0"
    if row.of_costs and label.kind in row.description:
        return f"evaluation.metric {metric} is of labels with costs: say in label.costs what errors cost"
    return _unknown(f"evaluation.metric of a {label.kind} label", metric, known)


def _unknown(where: str, name: str, known: Sequence[str]) -> str:
    return " ".join(
        part for part in (f"{where} names {name!r}; expected one of: {', '.join(known)}.", suggest(name, known)) if part
    )
