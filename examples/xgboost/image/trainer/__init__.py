"""A trainer by XGBoost: gradient boosting over histograms."""
