"""Tuning: studies, trials and hyperparameter tuning jobs, one engine behind JobService and VizierService.

`study_spec` refuses what cannot be searched, `space` reads it; `algorithms` chooses the next values (`grid`, `random`,
`bayesian`, the last in a process of its own); `measurements`, `stopping` and `study_end` judge what trials report.
`studies`, `trials` and `suggestions` answer VizierService; `tuning_jobs` answers JobService, and `tuner` runs its jobs.
"""
