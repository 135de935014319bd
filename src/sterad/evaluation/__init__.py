"""Stage 11: the accuracy matrix of a learner on a stream, and metrics as pure functions of it."""
