"""Whether somebody went back to an earlier version after a run was ordered: its page and its log say so."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.documents import Rollback
from retraining.core.naming import storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.run_keys import stamp
from retraining.core.promotion.rollbacks import explain_since
from retraining.hooks.ports import CloudPort


def gone_back_since(cloud: CloudPort, model: str, context: Context) -> str:
    """Return that somebody went back after the run was ordered, as a sentence; empty: nobody did.

    Args:
        cloud: The hooks.
        model: Whose.
        context: Airflow's: of the run, which was ordered at its `run_after`.
    """
    dag_run = context["dag_run"]
    if dag_run.run_after is None:
        return ""
    folders = cloud.artifacts.list_folders(storage.rollbacks_uri(cloud.settings.bucket, model))
    ordered = stamp(dag_run.run_after)
    later = [folder for folder in folders if ObjectAddress.parse(folder).stem > ordered]
    uris = [storage.document_uri(folder, Rollback.kind_name()) for folder in later[::-1]]
    for uri, data in cloud.artifacts.read_some(uris[:3]).items():
        return explain_since(Rollback.parse(data, uri))
    return ""
