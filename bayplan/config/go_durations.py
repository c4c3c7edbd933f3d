"""Go durations: seconds in Go's notation: `10m0s`, `1.5s`, `100ms`.

Mirrors String of time.Duration, which kube-scheduler uses when it writes a configuration.
"""

_NANO = 10**9
_SMALL_UNITS = ((10**6, "ms"), (10**3, "µs"), (1, "ns"))


def format_go_duration(seconds: float) -> str:
    """Return `seconds` as Go prints durations."""
    nanos = round(seconds * _NANO)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    if nanos == 0:
        return "0s"
    for size, unit in _SMALL_UNITS:
        if size <= nanos < _NANO:
            return f"{sign}{_decimal(nanos, size)}{unit}"
    minutes, nanos = divmod(nanos, 60 * _NANO)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}h" if hours else ""
    if hours or minutes:
        start += f"{minutes}m"
    return f"{sign}{start}{_decimal(nanos, _NANO)}s"


def _decimal(value: int, one: int) -> str:
    """Return `value / one` exactly, without trailing zeros."""
    whole, rest = divmod(value, one)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(one)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
