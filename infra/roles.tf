# The table of docs/composer.md, row by row; a test holds the two to each other. No member is taken away from a role that
# others have given it: every grant is a *_iam_member.

locals {
  members = {
    connection = "serviceAccount:${var.connection_account}"
    jobs       = "serviceAccount:${google_service_account.jobs.email}"
    agent      = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-aiplatform.iam.gserviceaccount.com"
  }

  project_roles = {
    connection = [
      "roles/aiplatform.user",
      "roles/bigquery.jobUser",
      "roles/logging.viewer",
      "roles/monitoring.viewer",
    ]
    jobs = ["roles/bigquery.readSessionUser"]
    agent = [
      "roles/aiplatform.serviceAgent",
      "roles/bigquery.jobUser",
      "roles/bigquery.readSessionUser",
    ]
  }

  # One role for each, on what is theirs.
  source_roles     = { connection = "roles/bigquery.dataViewer" }
  account_roles    = { connection = "roles/iam.serviceAccountUser" }
  repository_roles = { agent = "roles/artifactregistry.reader" }
  bucket_roles     = { connection = "roles/storage.objectUser", jobs = "roles/storage.objectViewer" }
  results_roles    = { connection = "roles/storage.objectUser", jobs = "roles/storage.objectViewer" }
  jobs_roles       = { jobs = "roles/storage.objectUser" } # below jobs/ alone
  secret_roles     = { connection = "roles/secretmanager.secretAccessor" }
  file_roles       = { connection = "roles/storage.objectViewer", jobs = "roles/storage.objectViewer" }
  dataset_roles = {
    connection = "roles/bigquery.dataEditor"
    jobs       = "roles/bigquery.dataViewer"
    agent      = "roles/bigquery.dataEditor"
  }

  project_grants = merge([
    for who, roles in local.project_roles : { for role in roles : "${who} ${role}" => { who = who, role = role } }
  ]...)
}

resource "google_project_iam_member" "project" {
  for_each = local.project_grants

  project = var.project
  role    = each.value.role
  member  = local.members[each.value.who]

  depends_on = [google_project_service.used]
}

resource "google_bigquery_dataset_iam_member" "retraining" {
  for_each = local.dataset_roles

  project    = var.project
  dataset_id = google_bigquery_dataset.retraining.dataset_id
  role       = each.value
  member     = local.members[each.key]
}

resource "google_bigquery_dataset_iam_member" "sources" {
  for_each = { for pair in setproduct(keys(local.source_roles), var.source_datasets) : join(" ", pair) => pair }

  project    = try(regex("^(.+)[.]", each.value[1])[0], var.project)
  dataset_id = regex("[^.]+$", each.value[1])
  role       = local.source_roles[each.value[0]]
  member     = local.members[each.value[0]]
}

resource "google_storage_bucket_iam_member" "retraining" {
  for_each = local.bucket_roles

  bucket = google_storage_bucket.retraining.name
  role   = each.value
  member = local.members[each.key]
}

resource "google_storage_bucket_iam_member" "results" {
  for_each = { for who, role in local.results_roles : who => role if var.results_bucket != null }

  bucket = local.results_bucket
  role   = each.value
  member = local.members[each.key]
}

resource "google_storage_bucket_iam_member" "jobs" {
  for_each = local.jobs_roles

  bucket = local.results_bucket
  role   = each.value
  member = local.members[each.key]

  condition {
    title      = "jobs write below jobs/"
    expression = "resource.name.startsWith(\"${local.jobs_objects}\")"
  }
}

resource "google_storage_bucket_iam_member" "files" {
  for_each = { for pair in setproduct(keys(local.file_roles), var.file_buckets) : join(" ", pair) => pair }

  bucket = each.value[1]
  role   = local.file_roles[each.value[0]]
  member = local.members[each.value[0]]
}

resource "google_secret_manager_secret_iam_member" "connections" {
  for_each = { for pair in setproduct(keys(local.secret_roles), var.connection_secrets) : join(" ", pair) => pair }

  project   = var.project
  secret_id = each.value[1]
  role      = local.secret_roles[each.value[0]]
  member    = local.members[each.value[0]]

  depends_on = [google_project_service.used]
}

resource "google_service_account_iam_member" "jobs" {
  for_each = local.account_roles

  service_account_id = google_service_account.jobs.name
  role               = each.value
  member             = local.members[each.key]
}

resource "google_artifact_registry_repository_iam_member" "images" {
  for_each = local.repository_roles

  project    = var.project
  location   = google_artifact_registry_repository.images.location
  repository = google_artifact_registry_repository.images.name
  role       = each.value
  member     = local.members[each.key]
}

# An account of a model's own has the roles of the jobs' account, and writes below jobs/<model>/ alone.

resource "google_project_iam_member" "models" {
  for_each = { for pair in setproduct(keys(var.model_accounts), local.project_roles.jobs) : join(" ", pair) => pair }

  project = var.project
  role    = each.value[1]
  member  = "serviceAccount:${google_service_account.models[each.value[0]].email}"
}

resource "google_bigquery_dataset_iam_member" "models" {
  for_each = var.model_accounts

  project    = var.project
  dataset_id = google_bigquery_dataset.retraining.dataset_id
  role       = local.dataset_roles.jobs
  member     = "serviceAccount:${google_service_account.models[each.key].email}"
}

resource "google_storage_bucket_iam_member" "models" {
  for_each = var.model_accounts

  bucket = google_storage_bucket.retraining.name
  role   = local.bucket_roles.jobs
  member = "serviceAccount:${google_service_account.models[each.key].email}"
}

resource "google_storage_bucket_iam_member" "models_results" {
  for_each = { for model, account in var.model_accounts : model => account if var.results_bucket != null }

  bucket = local.results_bucket
  role   = local.results_roles.jobs
  member = "serviceAccount:${google_service_account.models[each.key].email}"
}

resource "google_storage_bucket_iam_member" "models_jobs" {
  for_each = var.model_accounts

  bucket = local.results_bucket
  role   = local.jobs_roles.jobs
  member = "serviceAccount:${google_service_account.models[each.key].email}"

  condition {
    title      = "jobs write below jobs/${each.key}/"
    expression = "resource.name.startsWith(\"${local.jobs_objects}${each.key}/\")"
  }
}

resource "google_storage_bucket_iam_member" "models_files" {
  for_each = { for pair in setproduct(keys(var.model_accounts), var.file_buckets) : join(" ", pair) => pair }

  bucket = each.value[1]
  role   = local.file_roles.jobs
  member = "serviceAccount:${google_service_account.models[each.value[0]].email}"
}

resource "google_service_account_iam_member" "models" {
  for_each = var.model_accounts

  service_account_id = google_service_account.models[each.key].name
  role               = local.account_roles.connection
  member             = local.members.connection
}

# Who encrypts and decrypts with a key of one's own: the services that keep something, not the accounts that ask them.

locals {
  key_agents = toset(var.encryption_key == null ? [] : [
    "service-${data.google_project.this.number}@gcp-sa-aiplatform.iam.gserviceaccount.com",
    "service-${data.google_project.this.number}@gs-project-accounts.iam.gserviceaccount.com",
    "service-${data.google_project.this.number}@gcp-sa-artifactregistry.iam.gserviceaccount.com",
    "bq-${data.google_project.this.number}@bigquery-encryption.iam.gserviceaccount.com",
  ])
}

resource "google_kms_crypto_key_iam_member" "agents" {
  for_each = local.key_agents

  crypto_key_id = var.encryption_key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:${each.value}"

  depends_on = [google_project_service.used]
}

resource "google_project_iam_member" "queries" {
  for_each = toset(var.query_project[*])

  project = each.value
  role    = "roles/bigquery.jobUser"
  member  = local.members.connection
}
