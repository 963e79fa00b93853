"""Tuning: studies, trials and hyperparameter tuning jobs, one engine behind JobService and VizierService.

`search` says what to try next and when to stop. `vizier` answers VizierService; `service` answers JobService, and `run`
runs its jobs.
"""
