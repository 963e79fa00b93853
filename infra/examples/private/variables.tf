variable "project" {
  description = "Project that everything lives in."
  type        = string
}

variable "region" {
  description = "Region of all of it."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket for the runs' documents, without gs://."
  type        = string
}

variable "trainer_image" {
  description = "The trainer's image, by digest; push it once the repository is there, then apply again."
  type        = string

  validation {
    condition     = strcontains(var.trainer_image, "@sha256:")
    error_message = "Expected an image by its digest, <region>-docker.pkg.dev/…/trainer@sha256:…; a tag can be moved."
  }
}

variable "image_version" {
  description = "Composer's image: 3, with Airflow 3.1.7 or newer."
  type        = string

  validation {
    condition     = startswith(var.image_version, "composer-3-airflow-3")
    error_message = "Expected an image of Composer 3 with Airflow 3; gcloud composer images list names them."
  }
}

variable "environment_size" {
  description = "Size of Airflow's database and queue."
  type        = string
  default     = "ENVIRONMENT_SIZE_SMALL"
}

variable "source_datasets" {
  description = "Datasets that the examples queries read: sales of this project, my-data.sales of another."
  type        = set(string)
  default     = []
}

variable "ranges" {
  description = "Addresses of the subnets: Composer's, the jobs' and the endpoints'."
  type        = object({ composer = string, jobs = string, endpoints = string })
  default = {
    composer  = "10.10.0.0/22"
    jobs      = "10.10.4.0/22"
    endpoints = "10.10.8.0/24"
  }
}

variable "labels" {
  description = "Labels of everything that is made."
  type        = map(string)
  default     = {}
}
