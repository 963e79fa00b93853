# A perimeter of VPC Service Controls around the projects of the retraining: nobody copies data out of it, a job or a
# DAG neither, whatever roles they have. Applied by whoever administers the organisation's access policy.

terraform {
  required_version = ">= 1.5"

  # terraform init -backend-config=bucket=<the state's bucket> -backend-config=prefix=perimeter
  backend "gcs" {}

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0, < 8.0"
    }
  }
}

variable "access_policy" {
  description = "Number of the organisation's access policy (gcloud access-context-manager policies list)."
  type        = string
}

variable "projects" {
  description = "Ids of the projects inside: of the retraining, of its data, of its queries, of its network."
  type        = set(string)
}

variable "access_levels" {
  description = "Access levels from where people may reach Airflow, the console and the buckets, accessPolicies/<number>/accessLevels/<name>; a CI that uploads the bundle needs one too."
  type        = list(string)
}

variable "enforced" {
  description = "false: only log what would be refused. Run a night, read the log, then true."
  type        = bool
  default     = false
}

locals {
  # What the software calls: output services of the module, written out, since this is applied elsewhere by others.
  software = [
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

  # What Composer itself needs inside, or an environment is not made.
  composer = [
    "cloudkms.googleapis.com",
    "composer.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "containerregistry.googleapis.com",
    "pubsub.googleapis.com",
    "servicedirectory.googleapis.com",
    "sqladmin.googleapis.com",
  ]

  services  = concat(local.software, local.composer)
  resources = [for project in data.google_project.inside : "projects/${project.number}"]
}

data "google_project" "inside" {
  for_each = var.projects

  project_id = each.value
}

resource "google_access_context_manager_service_perimeter" "retraining" {
  parent                    = "accessPolicies/${var.access_policy}"
  name                      = "accessPolicies/${var.access_policy}/servicePerimeters/retraining"
  title                     = "retraining"
  use_explicit_dry_run_spec = true

  dynamic "status" {
    for_each = var.enforced ? [local.services] : []
    content {
      resources           = local.resources
      restricted_services = status.value
      access_levels       = var.access_levels

      # Composer's workers reach what is restricted and is named here, and no other service.
      vpc_accessible_services {
        enable_restriction = true
        allowed_services   = ["RESTRICTED-SERVICES"]
      }
    }
  }

  spec {
    resources           = local.resources
    restricted_services = local.services
    access_levels       = var.access_levels

    vpc_accessible_services {
      enable_restriction = true
      allowed_services   = ["RESTRICTED-SERVICES"]
    }
  }
}
