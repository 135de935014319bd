"""Stage 11: records to tables, figures and one self-contained page, without torch."""
