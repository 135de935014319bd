"""Figures of the report: pure functions from records to matplotlib figures, with their sections."""
