variable "project" {
  description = "Google Cloud project that everything lives in (RETRAINING_PROJECT)."
  type        = string
}

variable "region" {
  description = "Region of Vertex AI, the bucket and the dataset (RETRAINING_REGION)."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket for the runs' documents, without gs:// (RETRAINING_BUCKET)."
  type        = string
}

variable "results_bucket" {
  description = "Name of the bucket below whose folder jobs/ the jobs write (RETRAINING_RESULTS_BUCKET); null: the other one."
  type        = string
  default     = null
}

variable "soft_delete_days" {
  description = "Days for which what was deleted or written over in the buckets can be had back, 7 to 90; 0: not."
  type        = number
  default     = 7
}

variable "model_accounts" {
  description = "Models with an account of their own (service_account in their files): by the model's name the account's id."
  type        = map(string)
  default     = {}
}

variable "connection_account" {
  description = "E-mail of the service account that Airflow calls Google Cloud as: by default the Composer environment's."
  type        = string

  validation {
    condition     = endswith(var.connection_account, ".gserviceaccount.com")
    error_message = "Expected the e-mail of a service account, such as composer@my-project.iam.gserviceaccount.com."
  }
}

variable "dataset" {
  description = "BigQuery dataset for run tables and request logs (RETRAINING_DATASET)."
  type        = string
  default     = "retraining"
}

variable "repository" {
  description = "Artifact Registry repository of the trainer's image and of the mirror of TensorFlow Serving's."
  type        = string
  default     = "retraining"
}

variable "source_datasets" {
  description = "Datasets that the examples queries read: sales of this project, my-data.sales of another."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.source_datasets : can(regex("^([a-z][-a-z0-9.:]*\\.)?[A-Za-z0-9_]+$", name))])
    error_message = "Expected <dataset> or <project>.<dataset>, such as my-data.sales."
  }
}

variable "file_buckets" {
  description = "Buckets that data.files and features[].objects read, without gs://."
  type        = set(string)
  default     = []
}

variable "connection_secrets" {
  description = "Ids of the secrets that hold Airflow connections, such as airflow-connections-smtp_default."
  type        = set(string)
  default     = []
}

variable "encryption_key" {
  description = "Cloud KMS key of var.region for the buckets, the dataset, the images and all that is made (RETRAINING_ENCRYPTION_KEY); null: Google's keys. Of new ones alone: nothing that is there is encrypted anew."
  type        = string
  default     = null
}

variable "endpoint_network" {
  description = "VPC network, projects/<project id>/global/networks/<name>, in which endpoints answer (RETRAINING_ENDPOINT_NETWORK); null: at public addresses."
  type        = string
  default     = null
}

variable "endpoint_subnets" {
  description = "Full names of that network's subnets in var.region that Vertex AI may take endpoints' addresses from; empty: somebody else makes the service connection policy."
  type        = list(string)
  default     = []
}

variable "labels" {
  description = "Labels of the buckets, the dataset, the repository and all that is made (RETRAINING_LABELS)."
  type        = map(string)
  default     = {}
}

variable "query_project" {
  description = "Project that statements on BigQuery run in (RETRAINING_QUERY_PROJECT); null: var.project."
  type        = string
  default     = null
}

variable "tensorboard" {
  description = "Whether a Vertex AI TensorBoard is made for the epochs of runs (RETRAINING_TENSORBOARD, which needs vertex in RETRAINING_TRACKING)."
  type        = bool
  default     = false
}
