"""Names: deterministic names and hashes of created objects.

They have the form of a real cluster's (same alphabet, same lengths) but are derived from the
content instead of being random. Mirrors staging/src/k8s.io/apiserver/pkg/storage/names/generate.go
and `SafeEncodeString` of k8s.io/apimachinery/pkg/util/rand.
"""

from hashlib import blake2b

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels and no similar characters
SUFFIX_LENGTH = 5
MAX_PREFIX = 63 - SUFFIX_LENGTH


def make_suffix(seed: str) -> str:
    """Five letters for `seed`."""
    number = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest())
    letters = []
    for _ in range(SUFFIX_LENGTH):
        number, index = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[index])
    return "".join(letters)


def make_name(prefix: str, seed: str) -> str:
    """A name that begins with `prefix`, truncated where the whole would be too long."""
    return prefix[:MAX_PREFIX] + make_suffix(seed)


def make_hash(content: bytes) -> str:
    """A short hash in safe letters, as in the names of replica sets."""
    number = int.from_bytes(blake2b(content, digest_size=4).digest())
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))
