"""Name: the project's former name is read nowhere and written once."""

import gzip
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
FORMER = "moo" + "ring"  # in two parts, so that this file is not a finding


def tracked_files() -> list[Path]:
    """The files that git tracks; in an unpacked sdist, which has no git, every file but build
    products."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if found.returncode == 0:
        names = [name for name in found.stdout.decode().split("\0") if name]
        return [path for name in names if (path := ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]


def text_of(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return content.decode("utf-8", errors="ignore")


def test_the_former_name_occurs_only_in_the_changelog_line_about_it() -> None:
    places = [
        f"{path.relative_to(ROOT)}: {line.strip()[:100]}"
        for path in tracked_files()
        for line in [str(path.relative_to(ROOT)), *text_of(path).splitlines()]
        if FORMER in line.lower()
    ]

    assert len(places) == 1, "\n".join(places)
    assert places[0].startswith("CHANGELOG.md: - The project is called Bayplan")
