"""Stage 12: records of finished runs, one directory per run, statistics over seeds."""
