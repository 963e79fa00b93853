# What lets Vertex AI make the addresses of endpoints in a network (docs/composer.md#private-endpoints).

resource "google_network_connectivity_service_connection_policy" "endpoints" {
  for_each = toset(length(var.endpoint_subnets) == 0 ? [] : var.endpoint_network[*])

  project       = split("/", each.value)[1]
  location      = var.region
  name          = "retraining-vertex-ai"
  service_class = "gcp-vertexai"
  network       = each.value

  psc_config {
    subnetworks = var.endpoint_subnets
  }
}
