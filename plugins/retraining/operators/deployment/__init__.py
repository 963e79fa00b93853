"""From the registered version to the endpoint's traffic, and back."""
