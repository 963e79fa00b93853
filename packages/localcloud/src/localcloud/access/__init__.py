"""Who calls, and what they may do: accounts, tokens, the IAM table."""
