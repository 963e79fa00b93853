"""The reference lines: a linear model and small boosted trees of the same shards, which a good model beats."""
