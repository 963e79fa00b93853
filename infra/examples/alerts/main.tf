# What the software cannot tell of itself: that it does not run. Its own messages (docs/operations.md#who-is-told) are
# sent by Airflow; these come from outside.

terraform {
  required_version = ">= 1.5"

  # terraform init -backend-config=bucket=<the state's bucket> -backend-config=prefix=alerts
  backend "gcs" {}

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0, < 8.0"
    }
  }
}

variable "project" {
  description = "Project of the Composer environment and of the endpoints."
  type        = string
}

variable "environment" {
  description = "Name of the Composer environment."
  type        = string
}

variable "email" {
  description = "Who is told."
  type        = string
}

variable "billing_account" {
  description = "Billing account, for a month's budget of the project; null: none. Whoever applies must be allowed there."
  type        = string
  default     = null
}

variable "budget" {
  description = "That budget, in whole units of the account's currency: told at half of it, at all of it, and once a forecast is above it."
  type        = number
  default     = 100
}

locals {
  airflow = "resource.labels.environment_name=\"${var.environment}\""
  dags    = "resource.type=\"cloud_composer_workflow\" AND metric.type=\"composer.googleapis.com/workflow/run_count\""
  runbook = "The runbook is docs/operations.md of the retraining."
}

resource "google_monitoring_notification_channel" "email" {
  project      = var.project
  display_name = "Retraining"
  type         = "email"
  labels       = { email_address = var.email }
}

resource "google_monitoring_alert_policy" "stopped" {
  project               = var.project
  display_name          = "Retraining: Airflow does not run"
  combiner              = "OR"
  notification_channels = [google_monitoring_notification_channel.email.name]

  conditions {
    display_name = "the environment is not healthy for 15 minutes"
    condition_threshold {
      filter          = "resource.type=\"cloud_composer_environment\" AND metric.type=\"composer.googleapis.com/environment/healthy\" AND ${local.airflow}"
      comparison      = "COMPARISON_LT"
      threshold_value = 0.5
      duration        = "900s"

      aggregations {
        alignment_period   = "300s"
        per_series_aligner = "ALIGN_FRACTION_TRUE"
      }
    }
  }

  # A series that stopped is only seen while its last point is younger than the duration, which is at most 23.5 hours.
  conditions {
    display_name = "maintain, which is daily, has not succeeded for 23.5 hours"
    condition_absent {
      filter   = "${local.dags} AND metric.labels.state=\"success\" AND resource.labels.workflow_name=monitoring.regex.full_match(\"(.*[.])?maintain\")"
      duration = "84600s"

      aggregations {
        alignment_period   = "3600s"
        per_series_aligner = "ALIGN_SUM"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Nothing is retrained, watched or rolled back meanwhile; what is deployed goes on answering. ${local.runbook}"
  }
}

resource "google_monitoring_alert_policy" "failed" {
  project               = var.project
  display_name          = "Retraining: a run failed"
  combiner              = "OR"
  notification_channels = [google_monitoring_notification_channel.email.name]

  conditions {
    display_name = "a run of a DAG failed"
    condition_threshold {
      filter          = "${local.dags} AND metric.labels.state=\"failed\""
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "0s"

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_SUM"
        cross_series_reducer = "REDUCE_SUM"
        group_by_fields      = ["resource.label.workflow_name"]
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "`retraining why MODEL` says what happened. ${local.runbook}"
  }
}

resource "google_monitoring_alert_policy" "answers" {
  project               = var.project
  display_name          = "Retraining: an endpoint errs"
  combiner              = "OR"
  notification_channels = [google_monitoring_notification_channel.email.name]

  conditions {
    display_name = "more than 1 % of an endpoint's answers are the server's errors, for 10 minutes"
    condition_threshold {
      filter             = "resource.type=\"aiplatform.googleapis.com/Endpoint\" AND metric.type=\"aiplatform.googleapis.com/prediction/online/response_count\" AND metric.labels.response_code=starts_with(\"5\")"
      denominator_filter = "resource.type=\"aiplatform.googleapis.com/Endpoint\" AND metric.type=\"aiplatform.googleapis.com/prediction/online/response_count\""
      comparison         = "COMPARISON_GT"
      threshold_value    = 0.01
      duration           = "600s"

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_DELTA"
        cross_series_reducer = "REDUCE_SUM"
        group_by_fields      = ["resource.label.endpoint_id"]
      }

      denominator_aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_DELTA"
        cross_series_reducer = "REDUCE_SUM"
        group_by_fields      = ["resource.label.endpoint_id"]
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "`rollback__<model>` goes back to the version before. ${local.runbook}"
  }
}

data "google_project" "this" {
  project_id = var.project
}

resource "google_billing_budget" "project" {
  count = var.billing_account == null ? 0 : 1

  billing_account = var.billing_account
  display_name    = "Retraining"

  budget_filter {
    projects = ["projects/${data.google_project.this.number}"]
  }

  amount {
    specified_amount {
      units = tostring(var.budget)
    }
  }

  threshold_rules {
    threshold_percent = 0.5
  }

  threshold_rules {
    threshold_percent = 1.0
  }

  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "FORECASTED_SPEND"
  }

  all_updates_rule {
    monitoring_notification_channels = [google_monitoring_notification_channel.email.id]
  }
}
