"""Who this process is among the replicas of its job, and what happens when one of them goes away."""
