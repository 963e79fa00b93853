"""What hashicorp/google 6.50.0 takes, read in its schema and its reference: of each resource that `infra/` has."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
"""Arguments by name: True where one is required, False where not, and a block's own arguments."""

_MEMBER: Schema = {"role": True, "member": True}
_ALIGNED: Schema = {
    "alignment_period": False,
    "per_series_aligner": False,
    "cross_series_reducer": False,
    "group_by_fields": False,
}
_PERIMETER: Schema = {
    "resources": False,
    "restricted_services": False,
    "access_levels": False,
    "vpc_accessible_services": {"enable_restriction": False, "allowed_services": False},
}
ARGUMENTS: dict[str, Schema] = {
    "google_access_context_manager_service_perimeter": {
        "parent": True,
        "name": True,
        "title": True,
        "use_explicit_dry_run_spec": False,
        "status": _PERIMETER,
        "spec": _PERIMETER,
    },
    "google_artifact_registry_repository": {
        "repository_id": True,
        "format": True,
        "project": False,
        "location": False,
        "kms_key_name": False,
        "labels": False,
        "docker_config": {"immutable_tags": False},
    },
    "google_artifact_registry_repository_iam_member": {
        "repository": True,
        "project": False,
        "location": False,
        **_MEMBER,
    },
    "google_bigquery_dataset": {
        "dataset_id": True,
        "project": False,
        "location": False,
        "delete_contents_on_destroy": False,
        "labels": False,
        "default_encryption_configuration": {"kms_key_name": True},
    },
    "google_bigquery_dataset_iam_member": {"dataset_id": True, "project": False, **_MEMBER},
    "google_bigquery_reservation": {
        "name": True,
        "slot_capacity": True,
        "project": False,
        "location": False,
        "edition": False,
        "autoscale": {"max_slots": False},
    },
    "google_bigquery_reservation_assignment": {
        "assignee": True,
        "job_type": True,
        "reservation": True,
        "project": False,
        "location": False,
    },
    "google_billing_budget": {
        "billing_account": True,
        "display_name": False,
        "budget_filter": {"projects": False},
        "amount": {"specified_amount": {"units": False}},
        "threshold_rules": {"threshold_percent": True, "spend_basis": False},
        "all_updates_rule": {"monitoring_notification_channels": False},
    },
    "google_composer_environment": {
        "name": True,
        "project": False,
        "region": False,
        "labels": False,
        "config": {
            "environment_size": False,
            "enable_private_environment": False,
            "enable_private_builds_only": False,
            "software_config": {"image_version": False, "web_server_plugins_mode": False, "env_variables": False},
            "node_config": {"network": False, "subnetwork": False, "service_account": False},
        },
    },
    "google_compute_network": {
        "name": True,
        "project": False,
        "auto_create_subnetworks": False,
        "delete_default_routes_on_create": False,
    },
    "google_compute_network_attachment": {
        "name": True,
        "connection_preference": True,
        "subnetworks": True,
        "project": False,
        "region": False,
    },
    "google_compute_route": {
        "name": True,
        "network": True,
        "dest_range": True,
        "project": False,
        "next_hop_gateway": False,
    },
    "google_compute_subnetwork": {
        "name": True,
        "network": True,
        "ip_cidr_range": False,
        "project": False,
        "region": False,
        "private_ip_google_access": False,
    },
    "google_dns_managed_zone": {
        "name": True,
        "dns_name": True,
        "project": False,
        "visibility": False,
        "private_visibility_config": {"networks": {"network_url": True}},
    },
    "google_dns_record_set": {
        "managed_zone": True,
        "name": True,
        "type": True,
        "project": False,
        "ttl": False,
        "rrdatas": False,
    },
    "google_kms_crypto_key_iam_member": {"crypto_key_id": True, **_MEMBER},
    "google_monitoring_alert_policy": {
        "display_name": True,
        "combiner": True,
        "project": False,
        "notification_channels": False,
        "documentation": {"mime_type": False, "content": False},
        "conditions": {
            "display_name": True,
            "condition_threshold": {
                "comparison": True,
                "duration": True,
                "filter": False,
                "denominator_filter": False,
                "threshold_value": False,
                "aggregations": _ALIGNED,
                "denominator_aggregations": _ALIGNED,
            },
            "condition_absent": {"duration": True, "filter": False, "aggregations": _ALIGNED},
        },
    },
    "google_monitoring_notification_channel": {
        "type": True,
        "project": False,
        "display_name": False,
        "labels": False,
    },
    "google_network_connectivity_service_connection_policy": {
        "name": True,
        "location": True,
        "service_class": True,
        "network": True,
        "project": False,
        "psc_config": {"subnetworks": True},
    },
    "google_project_iam_member": {"project": True, **_MEMBER},
    "google_project_service": {"service": True, "project": False, "disable_on_destroy": False},
    "google_secret_manager_secret_iam_member": {"secret_id": True, "project": False, **_MEMBER},
    "google_service_account": {"account_id": True, "project": False, "display_name": False},
    "google_service_account_iam_member": {"service_account_id": True, **_MEMBER},
    "google_storage_bucket": {
        "name": True,
        "location": True,
        "project": False,
        "uniform_bucket_level_access": False,
        "public_access_prevention": False,
        "force_destroy": False,
        "labels": False,
        "encryption": {"default_kms_key_name": True},
        "soft_delete_policy": {"retention_duration_seconds": False},
        "versioning": {"enabled": True},
        "lifecycle_rule": {
            "condition": {"age": False, "num_newer_versions": False},
            "action": {"type": True},
        },
    },
    "google_vertex_ai_tensorboard": {
        "display_name": True,
        "project": False,
        "region": False,
        "labels": False,
        "encryption_spec": {"kms_key_name": True},
    },
    "google_storage_bucket_iam_member": {
        "bucket": True,
        "condition": {"title": True, "expression": True},
        **_MEMBER,
    },
}
