"""The ML Test Score of a model: from its file and its stored documents alone."""
