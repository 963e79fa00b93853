"""What a training minimises and what a model is measured by, for each kind of label."""
