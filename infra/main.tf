# What docs/composer.md asks for once per project: APIs, the bucket, the dataset, the repository and the jobs' account.
# The Composer environment and the tables of the sources are not made here.

locals {
  services = [
    "aiplatform.googleapis.com",
    "artifactregistry.googleapis.com",
    "bigquery.googleapis.com",
    "bigquerystorage.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "secretmanager.googleapis.com",
    "serviceusage.googleapis.com",
    "storage.googleapis.com",
  ]
}

data "google_project" "this" {
  project_id = var.project
}

resource "google_project_service" "used" {
  for_each = toset(local.services)

  project            = var.project
  service            = each.value
  disable_on_destroy = false # others in the project may use it
}

resource "google_storage_bucket" "retraining" {
  project                     = var.project
  name                        = var.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false # models that serve lie here
  labels                      = var.labels

  dynamic "encryption" {
    for_each = var.encryption_key[*]
    content {
      default_kms_key_name = encryption.value
    }
  }

  # What was deleted or written over can be had back for so long; versions would keep each state of a claim for ever.
  soft_delete_policy {
    retention_duration_seconds = var.soft_delete_days * 86400
  }

  lifecycle_rule {
    condition {
      age = 7
    }
    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }

  depends_on = [google_project_service.used, google_kms_crypto_key_iam_member.agents]
}

# What jobs write, where it shall lie in a bucket of its own.
resource "google_storage_bucket" "results" {
  count = var.results_bucket == null ? 0 : 1

  project                     = var.project
  name                        = var.results_bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false # models that serve lie here
  labels                      = var.labels

  dynamic "encryption" {
    for_each = var.encryption_key[*]
    content {
      default_kms_key_name = encryption.value
    }
  }

  soft_delete_policy {
    retention_duration_seconds = var.soft_delete_days * 86400
  }

  lifecycle_rule {
    condition {
      age = 7
    }
    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }

  depends_on = [google_project_service.used, google_kms_crypto_key_iam_member.agents]
}

locals {
  results_bucket = var.results_bucket == null ? google_storage_bucket.retraining.name : google_storage_bucket.results[0].name
  jobs_objects   = "projects/_/buckets/${local.results_bucket}/objects/jobs/"
}

resource "google_bigquery_dataset" "retraining" {
  project                    = var.project
  dataset_id                 = var.dataset
  location                   = var.region
  delete_contents_on_destroy = false # request logs
  labels                     = var.labels

  dynamic "default_encryption_configuration" {
    for_each = var.encryption_key[*]
    content {
      kms_key_name = default_encryption_configuration.value
    }
  }

  depends_on = [google_project_service.used, google_kms_crypto_key_iam_member.agents]
}

resource "google_artifact_registry_repository" "images" {
  project       = var.project
  location      = var.region
  repository_id = var.repository
  format        = "DOCKER"
  kms_key_name  = var.encryption_key
  labels        = var.labels

  docker_config {
    immutable_tags = true # a run's key has the image's name in it
  }

  depends_on = [google_project_service.used, google_kms_crypto_key_iam_member.agents]
}

resource "google_service_account" "jobs" {
  project      = var.project
  account_id   = "retraining-jobs"
  display_name = "Export, training and evaluation jobs of Retraining (RETRAINING_SERVICE_ACCOUNT)"
}

resource "google_service_account" "models" {
  for_each = var.model_accounts

  project      = var.project
  account_id   = each.value
  display_name = "Jobs of the model ${each.key} of Retraining (service_account in its file)"
}

resource "google_vertex_ai_tensorboard" "epochs" {
  count = var.tensorboard ? 1 : 0

  project      = var.project
  region       = var.region
  display_name = "Retraining"
  labels       = var.labels

  dynamic "encryption_spec" {
    for_each = var.encryption_key[*]
    content {
      kms_key_name = encryption_spec.value
    }
  }

  depends_on = [google_project_service.used, google_kms_crypto_key_iam_member.agents]
}
