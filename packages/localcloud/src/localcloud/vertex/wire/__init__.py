"""What goes over the wire: the API's methods and messages, names of resources, refusals, filters and pages of lists."""
