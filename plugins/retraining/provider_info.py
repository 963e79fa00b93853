"""What `airflow providers` says of the package: the entry point `apache_airflow_provider` names the function."""

from __future__ import annotations

INTEGRATION = "Retraining"
OPERATORS = (
    "retraining.operators.airflow.cloud_task",
    "retraining.operators.airflow.refused_files",
    "retraining.operators.airflow.trial_message",
    "retraining.operators.data.checks",
    "retraining.operators.data.snapshot",
    "retraining.operators.deployment.approval",
    "retraining.operators.deployment.registration",
    "retraining.operators.deployment.rollback_end",
    "retraining.operators.deployment.version_deployment",
    "retraining.operators.deployment.version_rollback",
    "retraining.operators.ending.cancel_jobs",
    "retraining.operators.ending.conclusion",
    "retraining.operators.evaluation.decision",
    "retraining.operators.jobs.evaluation",
    "retraining.operators.jobs.job",
    "retraining.operators.jobs.machine_pools",
    "retraining.operators.jobs.training",
    "retraining.operators.monitoring.decision",
    "retraining.operators.monitoring.measurement",
    "retraining.operators.monitoring.multivariate",
    "retraining.operators.monitoring.new_day",
    "retraining.operators.monitoring.rollback",
    "retraining.operators.planning.run_plan",
    "retraining.operators.report.models_page",
    "retraining.operators.report.page",
    "retraining.operators.report.tracking",
    "retraining.operators.retention.garbage_collection",
    "retraining.operators.scoring.destination",
    "retraining.operators.scoring.prediction",
    "retraining.operators.scoring.scoring_plan",
    "retraining.operators.tuning.study",
    "retraining.operators.walk_forward.planning",
    "retraining.operators.walk_forward.report",
    "retraining.operators.walk_forward.scoring",
)
LINKS = (
    "JobLink",
    "JobLogsLink",
    "RunDocumentsLink",
    "ModelVersionLink",
    "EndpointLink",
    "RollBackLink",
    "ReportLink",
    "AllRunsLink",
)


def get_provider_info() -> dict[str, object]:
    """Return the package's name, description, operators and links, in Airflow's schema `provider_info`.

    It has no connection types (it calls Google Cloud by the Google provider's) and no section of `airflow.cfg`: where
    things are is said by `RETRAINING_*`.
    """
    return {
        "package-name": "retraining",
        "name": "Retraining",
        "description": "Retrains TensorFlow models on Vertex AI: export, train, judge, register, deploy, watch.",
        "integrations": [{"integration-name": INTEGRATION, "tags": ["gcp"]}],
        "operators": [{"integration-name": INTEGRATION, "python-modules": list(OPERATORS)}],
        "extra-links": [f"retraining.operators.airflow.links.{name}" for name in LINKS],
    }
