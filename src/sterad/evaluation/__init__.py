"""Stage 9: the accuracy matrix at boundaries and at any step; metrics as pure functions of it."""
