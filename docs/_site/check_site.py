"""Check the built site: every link leads to a file and an anchor that exist, and nothing is loaded from outside.

`make docs` runs it. Prints each problem as page: problem; ends with 1 when there is one.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
"""What a browser fetches by itself. A plain link (`a`) may lead anywhere."""


class PageReader(HTMLParser):
    """Collects the anchors of a page, where it links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if values.get(LOADS.get(tag, "")) and values.get("rel") != "canonical":
            self.loads.append(values[LOADS[tag]])


def read_page(path: Path) -> PageReader:
    reader = PageReader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def find_problems(site: Path) -> list[str]:
    pages = {path: read_page(path) for path in sorted(site.rglob("*.html"))}
    problems = [] if pages else [f"{site}: expected HTML pages; got none"]
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.loads + page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads and parts.scheme != "data":
                    problems.append(f"{name}: loads {target}")
                continue
            if path.name == "404.html":
                continue  # it is served for any path, so its links are absolute
            there = path.parent / unquote(parts.path) if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file():
                problems.append(f"{name}: links to {target}: no such file")
            elif parts.fragment and there.resolve().suffix == ".html":
                anchors = pages[next(p for p in pages if p.resolve() == there.resolve())].anchors
                if unquote(parts.fragment) not in anchors:
                    problems.append(f"{name}: links to {target}: no such anchor")
    for style in site.rglob("*.css"):
        if "url(http" in style.read_text(encoding="utf-8"):
            problems.append(f"{style.relative_to(site)}: loads something from outside")
    return problems


if __name__ == "__main__":
    found = find_problems(Path(sys.argv[1]))
    print(
        "\n".join(found)
        or f"{sys.argv[1]}: all links lead somewhere, nothing is loaded from outside"
    )
    sys.exit(1 if found else 0)
