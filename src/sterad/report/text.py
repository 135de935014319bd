"""Durations and ages as text."""


def format_duration(seconds: float) -> str:
    """Return a duration as text.

    >>> format_duration(41.25), format_duration(185), format_duration(7260)
    ('41.2 s', '3 min 5 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def format_age(seconds: float) -> str:
    """Return an age in the largest unit that fits at least twice.

    >>> format_age(50), format_age(600), format_age(90_000), format_age(200_000)
    ('50 s', '10 min', '25 h', '2 days')
    """
    for unit, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"
