"""Stage 10: what came of a run, one directory per run, statistics over seeds."""
