"""One figure per file, each a pure function from records to a matplotlib Figure."""
