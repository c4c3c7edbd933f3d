"""Damaged: changes to the bytes of a file, as a bad disk, an editor or a stranger makes them."""

from __future__ import annotations

from hypothesis import strategies as st

KINDS = ("flip", "cut", "duplicate", "swap", "blank", "drop", "digit", "token")
TOKENS = (
    b"null",
    b"-1",
    b"1e999",
    b'""',
    b"[]",
    b"{}",
    b"true",
    b'"\\ud800"',
    b"99999999999999999999",
)


@st.composite
def damages(draw: st.DrawFn, content: bytes, parts: bytes = b"\n") -> bytes:
    """The content with one to three changes; lines, or other `parts`, are duplicated, swapped, emptied and dropped."""
    for _ in range(draw(st.integers(1, 3))):
        content = _changed(draw, content, parts)
    return content


def _changed(draw: st.DrawFn, content: bytes, parts: bytes) -> bytes:
    kind = draw(st.sampled_from(KINDS))
    place = draw(st.integers(0, max(len(content) - 1, 0)))
    if kind == "flip":
        return content[:place] + bytes([draw(st.integers(0, 255))]) + content[place + 1 :]
    if kind == "cut":
        return content[:place]
    if kind == "digit":
        return content[:place] + b"7" + content[place:]
    if kind == "token":
        end = min(place + draw(st.integers(0, 12)), len(content))
        return content[:place] + draw(st.sampled_from(TOKENS)) + content[end:]
    lines = content.split(parts)
    one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    if kind == "swap":
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == "duplicate":
        lines.insert(other, lines[one])
    elif kind == "blank":
        lines[one] = b""
    else:
        del lines[one]
    return parts.join(lines)
