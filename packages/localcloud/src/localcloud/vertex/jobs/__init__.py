"""Jobs: `family` is what all families do, `runs` a job from start to end; a folder has what is one family's own.

No family imports another: what one needs of another (a tuning job of the custom jobs that its trials are) the server
hands to it.
"""
