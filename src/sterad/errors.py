"""The error for mistakes of users."""


class SteradError(ValueError):
    """An error that the user can fix; the command line prints its message and exits with 2.

    The message names the value, the rule and the remedy.
    """
