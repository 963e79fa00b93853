# A Composer environment without public addresses. Its workers reach Google's services alone, at restricted addresses;
# endpoints answer in the same network, and jobs have an interface in it.

terraform {
  required_version = ">= 1.5"

  # terraform init -backend-config=bucket=<the state's bucket> -backend-config=prefix=retraining
  backend "gcs" {}

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.8, < 8.0" # Composer 3
    }
  }
}

module "retraining" {
  source = "../.."

  project            = var.project
  region             = var.region
  bucket             = var.bucket
  connection_account = google_service_account.composer.email
  source_datasets    = var.source_datasets
  labels             = var.labels
  endpoint_network   = google_compute_network.this.id
  endpoint_subnets   = [google_compute_subnetwork.endpoints.id]
}

resource "google_service_account" "composer" {
  project      = var.project
  account_id   = "retraining-composer"
  display_name = "Composer environment of Retraining"
}

resource "google_project_iam_member" "composer" {
  project = var.project
  role    = "roles/composer.worker"
  member  = "serviceAccount:${google_service_account.composer.email}"
}

resource "google_project_service" "environment" {
  for_each = toset([
    "composer.googleapis.com",
    "compute.googleapis.com",
    "dns.googleapis.com",
    "networkconnectivity.googleapis.com",
  ])

  project            = var.project
  service            = each.value
  disable_on_destroy = false # others in the project may use it
}

resource "google_composer_environment" "this" {
  project = var.project
  region  = var.region
  name    = "retraining"
  labels  = var.labels

  config {
    environment_size           = var.environment_size
    enable_private_environment = true
    enable_private_builds_only = true # the bundle installs nothing

    software_config {
      image_version           = var.image_version
      web_server_plugins_mode = "ENABLED" # the Models page

      env_variables = merge(
        { for name, value in module.retraining.environment_variables : name => value if value != "" },
        {
          RETRAINING_TRAINER_IMAGE      = var.trainer_image
          RETRAINING_NETWORK_ATTACHMENT = google_compute_network_attachment.jobs.id
        },
      )
    }

    node_config {
      network         = google_compute_network.this.id
      subnetwork      = google_compute_subnetwork.composer.id
      service_account = google_service_account.composer.email
    }
  }

  depends_on = [
    google_dns_record_set.names,
    google_dns_record_set.restricted,
    google_project_iam_member.composer,
    google_project_service.environment,
  ]
}

output "dags" {
  description = "Where make deploy puts the bundle (docs/composer.md#3-upload)."
  value       = google_composer_environment.this.config[0].dag_gcs_prefix
}
