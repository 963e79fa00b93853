# Three projects: one has the data, one pays for queries, one has the models. Teams that own data give away nothing but
# to read it, and the bill of queries stays apart from that of machines.

terraform {
  required_version = ">= 1.5"

  # terraform init -backend-config=bucket=<the state's bucket> -backend-config=prefix=retraining
  backend "gcs" {}

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0, < 8.0"
    }
  }
}

variable "models_project" {
  description = "Project of Vertex AI, the bucket, the run tables and Composer (RETRAINING_PROJECT)."
  type        = string
}

variable "query_project" {
  description = "Project that statements run in and that pays for them (RETRAINING_QUERY_PROJECT)."
  type        = string
}

variable "data_project" {
  description = "Project of the tables that the examples queries read; name them with it in the SQL."
  type        = string
}

variable "data_datasets" {
  description = "Datasets there that may be read."
  type        = set(string)
}

variable "data_buckets" {
  description = "Buckets there that data.files and features[].objects read, without gs://."
  type        = set(string)
  default     = []
}

variable "region" {
  description = "Region of all of it: a query finds tables of its own location alone."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket for the runs' documents, without gs://."
  type        = string
}

variable "connection_account" {
  description = "Account that Airflow calls Google Cloud as, by default the Composer environment's."
  type        = string
}

variable "slots" {
  description = "Slots of BigQuery that queries have to themselves, a multiple of 50; 0: they are paid by the byte."
  type        = number
  default     = 0
}

variable "edition" {
  description = "Edition of BigQuery that the slots are of; what each can do is in BigQuery's table of editions."
  type        = string
  default     = "STANDARD"
}

module "retraining" {
  source = "../.."

  project            = var.models_project
  region             = var.region
  bucket             = var.bucket
  connection_account = var.connection_account
  query_project      = var.query_project
  source_datasets    = [for dataset in var.data_datasets : "${var.data_project}.${dataset}"]
  file_buckets       = var.data_buckets
}

resource "google_project_service" "queries" {
  for_each = toset(["bigquery.googleapis.com", "bigqueryreservation.googleapis.com"])

  project            = var.query_project
  service            = each.value
  disable_on_destroy = false # others in the project may use it
}

# Slots that come when queries need them, and go: paid by the second.
resource "google_bigquery_reservation" "retraining" {
  count = var.slots == 0 ? 0 : 1

  project       = var.query_project
  location      = var.region
  name          = "retraining"
  edition       = var.edition
  slot_capacity = 0

  autoscale {
    max_slots = var.slots
  }

  depends_on = [google_project_service.queries]
}

resource "google_bigquery_reservation_assignment" "queries" {
  count = var.slots == 0 ? 0 : 1

  project     = var.query_project
  location    = var.region
  assignee    = "projects/${var.query_project}"
  job_type    = "QUERY"
  reservation = google_bigquery_reservation.retraining[0].id
}

output "environment_variables" {
  description = "What the Composer environment's variables must be."
  value       = module.retraining.environment_variables
}
