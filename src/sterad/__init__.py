"""Online continual learning with laws on the unit sphere."""
