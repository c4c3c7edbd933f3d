"""Requests on a connection: bytes in any pieces are read, or rejected."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.apiserver.web.http_requests import (
    MAX_BODY,
    MAX_HEAD,
    MalformedRequestError,
    RequestReader,
    WholeRequest,
)

PLAIN = b"POST /a?x=1&x=2&y=%41 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
CHUNKED = (
    b"PUT /b%20c HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;note=x\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
)
BARE = b"\r\nGET / HTTP/1.1\r\nHost: h\r\nAccept:  a, b \r\n\r\n"


def read(*pieces: bytes) -> list[WholeRequest]:
    reader = RequestReader()
    for piece in pieces:
        reader.feed(piece)
    return list(reader.complete)


@given(st.lists(st.integers(0, len(PLAIN + CHUNKED + BARE)), max_size=8).map(sorted))
def test_requests_are_the_same_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    data = PLAIN + CHUNKED + BARE
    bounds = [0, *cuts, len(data)]

    plain, chunked, bare = read(*(data[a:b] for a, b in pairwise(bounds)))

    assert (plain.method, plain.path, plain.body) == ("POST", "/a", b"abc")
    assert plain.query == {"x": "1", "y": "A"}
    assert (chunked.method, chunked.path, chunked.body) == ("PUT", "/b c", b"abc0123456789")
    assert (bare.method, bare.body, bare.header("accept")) == ("GET", b"", "a, b")


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        pytest.param("/a#b?c=d", "/a", {}, id="a fragment is no part of it"),
        pytest.param("http://h:1/a?b=c", "/a", {"b": "c"}, id="with scheme and host"),
        pytest.param("*", "*", {}, id="the server itself"),
        pytest.param("http://[/a", "", {}, id="no address"),
    ],
)
def test_targets(target: str, path: str, query: dict[str, str]) -> None:
    (request,) = read(f"GET {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode())

    assert (request.path, request.query) == (path, query)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"\x16\x03\x01\r\n\r\n", 400, id="TLS on a plain port"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 400, id="another version"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400, id="a space before the colon"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n more\r\n\r\n", 400, id="a folded header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400, id="a bare line feed"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: \0\r\n\r\n", 400, id="a zero byte"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            id="two lengths",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 400, id="gzip"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400, id="a negative length"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
            400,
            id="a chunk of another size",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            400,
            id="a chunk without a size",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1),
            413,
            id="a large body",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b"
            % (MAX_BODY + 1, b"a" * (MAX_BODY + 1)),
            413,
            id="a large chunk",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
            400,
            id="a length beyond 64 bits",
        ),
        pytest.param(b"GET /" + b"a" * MAX_HEAD + b" HTTP/1.1\r\n\r\n", 431, id="a long line"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: h\r\n" + b"A: b\r\n" * MAX_HEAD, 431, id="many headers"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
            + b"A: b\r\n" * MAX_HEAD,
            431,
            id="many headers after the body",
        ),
        pytest.param(b"GET /\r\n\r\n", 400, id="no version"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            400,
            id="gzip in chunks",
        ),
    ],
)
def test_malformed_requests_are_rejected(data: bytes, code: int) -> None:
    with pytest.raises(MalformedRequestError) as error:
        read(data)

    assert error.value.code == code


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_rejected_or_incomplete(data: bytes, is_body: bool) -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

    with suppress(MalformedRequestError):
        read(head + data if is_body else data)


@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(b"GET / HTTP/1.1\r\nA: ", id="a header"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ",
            id="a header after the body",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            id="a note to a chunk",
        ),
    ],
)
def test_what_never_ends_is_rejected_piece_by_piece(begin: bytes) -> None:
    with pytest.raises(MalformedRequestError) as error:
        read(begin, *[b"a" * 1000] * (MAX_HEAD // 1000 + 2))

    assert error.value.code == 431


def test_a_body_in_chunks_of_one_byte() -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

    (request,) = read(head, *[b"1\r\na\r\n" * 1000] * 100, b"0\r\n\r\n")

    assert request.body == b"a" * 100_000


def test_an_upgrade_is_answered_as_a_request() -> None:
    upgrade = b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    first, second = read(upgrade + PLAIN)

    assert (first.path, first.header("upgrade")) == ("/a", "websocket")
    assert second.body == b"abc"
