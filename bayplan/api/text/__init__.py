"""Text: the notations of Kubernetes: quantities, durations, cron schedules, names, versions and queries."""
