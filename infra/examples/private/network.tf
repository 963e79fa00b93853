# A network with no way out but to Google's restricted addresses (restricted.googleapis.com, 199.36.153.4/30), which
# serve what VPC Service Controls can hold, and nothing else.

locals {
  restricted = ["199.36.153.4", "199.36.153.5", "199.36.153.6", "199.36.153.7"]
  zones = {
    googleapis = "googleapis.com." # the services
    registry   = "pkg.dev."        # images of jobs and of what serves
  }
}

resource "google_compute_network" "this" {
  project                         = var.project
  name                            = "retraining"
  auto_create_subnetworks         = false
  delete_default_routes_on_create = true # the one to the internet

  depends_on = [google_project_service.environment]
}

resource "google_compute_route" "restricted" {
  project          = var.project
  name             = "retraining-restricted-googleapis"
  network          = google_compute_network.this.id
  dest_range       = "199.36.153.4/30"
  next_hop_gateway = "default-internet-gateway" # these addresses do not leave Google's network
}

resource "google_compute_subnetwork" "composer" {
  project                  = var.project
  region                   = var.region
  name                     = "retraining-composer"
  network                  = google_compute_network.this.id
  ip_cidr_range            = var.ranges.composer
  private_ip_google_access = true
}

resource "google_compute_subnetwork" "jobs" {
  project       = var.project
  region        = var.region
  name          = "retraining-jobs"
  network       = google_compute_network.this.id
  ip_cidr_range = var.ranges.jobs
}

resource "google_compute_subnetwork" "endpoints" {
  project       = var.project
  region        = var.region
  name          = "retraining-endpoints"
  network       = google_compute_network.this.id
  ip_cidr_range = var.ranges.endpoints
}

# Jobs have an interface in this network, to reach what lies in it. Google's services they reach by Vertex AI's own
# network, and the internet too, unless a perimeter holds them (../perimeter).
resource "google_compute_network_attachment" "jobs" {
  project               = var.project
  region                = var.region
  name                  = "retraining-jobs"
  connection_preference = "ACCEPT_AUTOMATIC"
  subnetworks           = [google_compute_subnetwork.jobs.id]
}

# Vertex AI changes the attachment for each job.
resource "google_project_iam_member" "attachments" {
  project = var.project
  role    = "roles/compute.networkAdmin"
  member  = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-aiplatform.iam.gserviceaccount.com"

  depends_on = [module.retraining]
}

data "google_project" "this" {
  project_id = var.project
}

resource "google_dns_managed_zone" "google" {
  for_each = local.zones

  project    = var.project
  name       = "retraining-${each.key}"
  dns_name   = each.value
  visibility = "private"

  private_visibility_config {
    networks {
      network_url = google_compute_network.this.id
    }
  }

  depends_on = [google_project_service.environment]
}

resource "google_dns_record_set" "restricted" {
  for_each = { googleapis = "restricted.googleapis.com.", registry = "pkg.dev." }

  project      = var.project
  managed_zone = google_dns_managed_zone.google[each.key].name
  name         = each.value
  type         = "A"
  ttl          = 300
  rrdatas      = local.restricted
}

resource "google_dns_record_set" "names" {
  for_each = { googleapis = "restricted.googleapis.com.", registry = "pkg.dev." }

  project      = var.project
  managed_zone = google_dns_managed_zone.google[each.key].name
  name         = "*.${local.zones[each.key]}"
  type         = "CNAME"
  ttl          = 300
  rrdatas      = [each.value]
}
