"""The one error that users see: a sentence with the value, the rule and the remedy."""


class SteradError(ValueError):
    """Something the user can mend; the command line prints it and exits with 2."""
