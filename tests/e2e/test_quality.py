"""Is the flights model worth having? Held against a logistic regression on the same columns, rows and split.

Works through the hooks and the job orders on the local cloud, without a scheduler, with the spec as it is shipped.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

from retraining.core import cost, model_spec, names, orders, plan, settings, snapshot, statistics, windows
from retraining.core.documents import Column, Document, Evaluation, Plan, Trigger
from retraining.core.queries import Query

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
AS_OF = "2013-11-20T03:00:00Z"
COLUMNS_LIKE_MODEL = 0.03  # AUC: how much worse than a logistic regression the shipped model may be


@pytest.fixture(scope="module")
def bigquery(local_cloud) -> Any:
    """A BigQuery client on the seeded local cloud."""
    from google.cloud import bigquery

    local_cloud.run("seed")
    return bigquery.Client(project=local_cloud.project, location=local_cloud.region)


def read(bigquery: Any, query: Query) -> list[dict[str, Any]]:
    """Return a query's rows."""
    from google.cloud.bigquery import QueryJobConfig

    config = QueryJobConfig.from_api_repr({"query": query.to_api()})
    return [dict(row.items()) for row in bigquery.query(query.sql, job_config=config).result()]


def make_plan() -> Plan:
    """Return the plan of one night of the shipped spec."""
    where, include = settings.load(os.environ), settings.include_path()
    spec = model_spec.load_spec(include / "models" / "flight_delays.yaml")
    return plan.build_plan(
        spec=spec,
        sql=model_spec.load_query(spec, include),
        as_of=windows.resolve_as_of(AS_OF, None, None, None),
        settings=where,
        mode="live",
        trigger=Trigger(kind="manual", reason="quality test"),
        overrides={},
        force=False,
        deploy=False,
        dag_id="quality",
        dag_run_id="quality",
        prices=cost.load_prices(include),
    )


def train_and_evaluate(bigquery: Any, planned: Plan) -> Evaluation:
    """Run export, training and evaluation as Vertex AI jobs; return the evaluation."""
    import google.auth

    from retraining.hooks.artifacts import Artifacts
    from retraining.hooks.session import Session
    from retraining.hooks.vertex_jobs import VertexJobs

    session = Session(project=planned.project, region=planned.region, credentials=google.auth.default()[0])
    artifacts, jobs = Artifacts(session), VertexJobs(session)

    def store(document: Document) -> None:
        artifacts.write_once(names.document_uri(planned.run_uri, document.kind_name()), document.to_bytes())

    read(bigquery, snapshot.render_snapshot_sql(planned))
    table = bigquery.get_table(names.run_table(planned))
    columns = [Column(name=field.name, type=field.field_type, mode=field.mode) for field in table.schema]
    fingerprints = read(bigquery, snapshot.render_fingerprint_sql(planned))
    taken = snapshot.build_snapshot(planned, columns, fingerprints, {})
    known = statistics.build_statistics(
        planned, taken, read(bigquery, statistics.render_statistics_sql(planned, taken))
    )
    for document in (planned, taken, known):
        store(document)
    for order in (
        orders.export_order(planned, taken),
        orders.train_order(planned),
        orders.evaluate_order(planned, None),
    ):
        store(order.request)
        job = jobs.create(order.custom_job)
        while job.active:
            time.sleep(0.5)  # between two looks at a running job
            job = jobs.get(job.name)
        assert job.state == "JOB_STATE_SUCCEEDED", job.error_message
    data = artifacts.read(names.document_uri(planned.run_uri, "evaluation"))
    assert data is not None
    return Evaluation.parse(data)


def logistic_regression_auc(bigquery: Any, planned: Plan) -> float:
    """Return the test AUC of scikit-learn's logistic regression: one-hot categories, standardised numbers."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    spec = planned.spec
    listed = ", ".join([*spec.feature_names, spec.label.name, "part", "CAST(span AS STRING) AS day"])
    rows = read(bigquery, Query(sql=f"SELECT {listed} FROM `{names.run_table(planned)}` ORDER BY row_hash"))  # noqa: S608  # names of a checked spec
    table = np.array([[row[name] for name in spec.feature_names] for row in rows], dtype=object)
    label = np.array([row[spec.label.name] for row in rows])
    tested = np.array([row["day"] >= planned.window.test_start.isoformat() for row in rows])
    trained = ~tested & np.array([row["part"] == "train" for row in rows])
    numbers = [index for index, feature in enumerate(spec.features) if feature.kind == "numeric"]
    categories = [index for index, feature in enumerate(spec.features) if feature.kind == "categorical"]
    table[:, numbers] = table[:, numbers].astype(float)
    model = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore"), categories),
        ),
        LogisticRegression(max_iter=1000),
    )
    model.fit(table[trained], label[trained])
    return float(roc_auc_score(label[tested], model.predict_proba(table[tested])[:, 1]))


def test_flights_model_beats_the_base_rate_and_keeps_up_with_logistic_regression(local_cloud, bigquery):
    """The shipped model is better than the base rate, and about as good as a plain model on the same columns."""
    planned = make_plan()
    evaluation = train_and_evaluate(bigquery, planned)
    plain = logistic_regression_auc(bigquery, planned)
    ours = evaluation.challenger.metrics
    print(
        f"auc {ours.auc:.4f}, logistic regression {plain:.4f}; log loss {ours.log_loss:.4f}, base rate "
        f"{evaluation.baseline.log_loss:.4f}"
    )
    assert ours.log_loss < evaluation.baseline.log_loss
    assert ours.auc is not None
    assert ours.auc > plain - COLUMNS_LIKE_MODEL
