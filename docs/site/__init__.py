"""Builds the documentation site: `python -m docs.site` from a checkout, or `make docs`."""
