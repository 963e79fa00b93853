# The bucket that keeps Terraform's state of the others. Its own state stays beside it: terraform import brings it back.

terraform {
  required_version = ">= 1.5"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0, < 8.0"
    }
  }
}

variable "project" {
  description = "Project of the bucket; whoever may read it reads every address and name in the state."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket, without gs://."
  type        = string
}

variable "location" {
  description = "Region or multi-region of the bucket."
  type        = string
}

resource "google_storage_bucket" "state" {
  project                     = var.project
  name                        = var.bucket
  location                    = var.location
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false

  # Each apply writes the state over: an older one is what brings back a state that was lost or broken.
  versioning {
    enabled = true
  }

  lifecycle_rule {
    condition {
      num_newer_versions = 100
    }
    action {
      type = "Delete"
    }
  }
}
