output "environment_variables" {
  description = "What the Composer environment's variables must be. The trainer's image is pushed afterwards; name it by digest."
  value = {
    RETRAINING_PROJECT          = var.project
    RETRAINING_REGION           = var.region
    RETRAINING_BUCKET           = google_storage_bucket.retraining.name
    RETRAINING_RESULTS_BUCKET   = local.results_bucket
    RETRAINING_DATASET          = google_bigquery_dataset.retraining.dataset_id
    RETRAINING_SERVICE_ACCOUNT  = google_service_account.jobs.email
    RETRAINING_ENCRYPTION_KEY   = var.encryption_key == null ? "" : var.encryption_key
    RETRAINING_ENDPOINT_NETWORK = var.endpoint_network == null ? "" : var.endpoint_network
    RETRAINING_LABELS           = join(",", [for key, value in var.labels : "${key}=${value}"])
    RETRAINING_QUERY_PROJECT    = var.query_project == null ? "" : var.query_project
    RETRAINING_TENSORBOARD      = var.tensorboard ? google_vertex_ai_tensorboard.epochs[0].name : ""
    RETRAINING_TRACKING         = var.tensorboard ? "vertex" : ""
    RETRAINING_TRAINER_IMAGE    = "${var.region}-docker.pkg.dev/${var.project}/${var.repository}/trainer@sha256:…"
  }
}

output "model_accounts" {
  description = "What service_account must be in the files of the models that have an account of their own."
  value       = { for model, account in google_service_account.models : model => account.email }
}

output "services" {
  description = "APIs that are called; a perimeter of VPC Service Controls must let the environment reach them."
  value       = local.services
}
