"""A trainer by scikit-learn: gradient boosting over histograms."""
