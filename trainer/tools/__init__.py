"""Run by hand or by make, never in a job."""
