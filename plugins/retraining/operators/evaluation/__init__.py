"""Champion and challenger: what is needed to compare them, and the decision."""
