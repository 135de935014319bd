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


def format_quantity(number: float) -> str:
    """Return a number in three digits with the prefix of a power of a thousand.

    >>> format_quantity(74), format_quantity(75_776), format_quantity(8.1e9), format_quantity(0)
    ('74', '75.8 k', '8.1 G', '0')
    """
    for unit, prefix in ((1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= 0.9995 * unit:
            return f"{_three_digits(number / unit)}{prefix}"
    return _three_digits(number)


def _three_digits(number: float) -> str:
    digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
