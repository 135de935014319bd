"""Stage 13: records to tables, figures and one self-contained HTML page, without torch."""
