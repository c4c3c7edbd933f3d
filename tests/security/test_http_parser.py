"""HTTP parser: one reading of every request, or none. A corpus of forms that proxies and servers read differently."""

from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.apiserver.web.http_requests import (
    MAX_BODY,
    MAX_HEAD,
    MalformedRequestError,
    RequestReader,
    WholeRequest,
)
from tests.rig.api_server import ServerInThread

from .wire import exchange, statuses

HOST = b"Host: localhost\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\n" + HOST

REFUSED = {
    "CL.TE": POST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
    "TE.CL": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n" + HIDDEN,
    "TE.TE, two codings": POST
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "TE.TE, identity last": POST
    + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "TE.TE, gzip first": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE.TE, another word": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE.TE, quoted": POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n' + HIDDEN,
    "TE, a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE, space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE of HTTP/1.0": b"POST /a HTTP/1.0\r\n"
    + HOST
    + b"Transfer-Encoding: identity\r\n\r\n"
    + HIDDEN,
    "CL twice, different": POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + HIDDEN,
    "CL twice, equal": POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "CL, a list": POST + b"Content-Length: 0, 44\r\n\r\n" + HIDDEN,
    "CL, a sign": POST + b"Content-Length: +1\r\n\r\nx",
    "CL, negative": POST + b"Content-Length: -1\r\n\r\nx",
    "CL, hexadecimal": POST + b"Content-Length: 0x1\r\n\r\nx",
    "CL, more than 64 bits": POST + b"Content-Length: 99999999999999999999999\r\n\r\nx",
    "CL, an underscore": POST + b"Content-Length: 1_0\r\n\r\n0123456789",
    "CL, space before the colon": POST + b"Content-Length : 1\r\n\r\nx",
    "obs-fold": POST + b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n" + HIDDEN,
    "obs-fold of the first line": b"POST /a HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "bare LF": b"GET /a HTTP/1.1\nHost: localhost\n\n",
    "bare LF after a header": POST + b"X: a\nContent-Length: 44\r\n\r\n" + HIDDEN,
    "bare CR in a header": POST + b"X: a\rContent-Length: 44\r\n\r\n" + HIDDEN,
    "NUL in a header": POST + b"X: a\x00b\r\n\r\n",
    "NUL in a name": POST + b"X\x00: a\r\n\r\n",
    "a header without a colon": POST + b"X\r\n\r\n",
    "a header without a name": POST + b": x\r\n\r\n",
    "chunk, negative": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
    "chunk, 0x": POST + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
    "chunk, more than 64 bits": POST + b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\nx",
    "chunk, bare LF": POST + b"Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
    "chunk, data too long": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
    "chunk, a line break in an extension": POST
    + b"Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n",
    "a length after the body": POST
    + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 44\r\n\r\n"
    + HIDDEN,
    "upgrade with a body": POST
    + b"Connection: upgrade\r\nUpgrade: x\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN)
    + HIDDEN,
    "upgrade with chunks": POST
    + b"Connection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    + HIDDEN,
    "connect with a body": b"CONNECT a:1 HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: %d\r\n\r\n" % len(HIDDEN)
    + HIDDEN,
    "no host": b"GET /a HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /a HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n",
    "HTTP/0.9": b"GET /a\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2": b"GET /a HTTP/1.2\r\n" + HOST + b"\r\n",
    "a space in the target": b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tab instead of a space": b"GET\t/a\tHTTP/1.1\r\n" + HOST + b"\r\n",
    "a lower-case method": b"get /a HTTP/1.1\r\n" + HOST + b"\r\n",
    "too long a head": POST + b"X: " + b"x" * (MAX_HEAD + 1) + b"\r\n\r\n",
    "too many headers": POST + b"X: x\r\n" * MAX_HEAD + b"\r\n",
    "too long a body": POST + b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1),
    "chunk extensions without end": POST
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + (b"1;" + b"e" * 4000 + b"\r\nx\r\n") * 100,
}
READ = {
    "a chunk extension": (
        POST + b'Transfer-Encoding: chunked\r\n\r\n1;a="b"\r\nx\r\n0\r\n\r\n' + HIDDEN,
        ["/a", "/hidden"],
    ),
    "trailers have no effect": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.example\r\n\r\n" + HIDDEN,
        ["/a", "/hidden"],
    ),
    "absolute form": (b"GET http://evil.example/b?c HTTP/1.1\r\n" + HOST + b"\r\n", ["/b"]),
    "a body of GET": (
        b"GET /a HTTP/1.1\r\n" + HOST + b"Content-Length: 44\r\n\r\n" + HIDDEN.ljust(44, b"x")[:44],
        ["/a"],
    ),
    "upgrade without a body": (
        POST + b"Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
        ["/a", "/hidden"],
    ),
    "empty lines before a request": (b"\r\n\r\n" + HIDDEN, ["/hidden"]),
}


def read(data: bytes, sizes: tuple[int, ...] = ()) -> tuple[list[WholeRequest], str]:
    """The requests, and the refusal after them; the bytes come in pieces of these sizes, and then all at once."""
    reader, place = RequestReader(), 0
    try:
        for size in (*sizes, len(data)):
            reader.feed(data[place : place + size])
            place += size
    except MalformedRequestError as error:
        return list(reader.complete), str(error)
    return list(reader.complete), ""


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_forms_with_two_readings_are_refused(data: bytes) -> None:
    requests, refusal = read(data)

    assert refusal or not requests
    assert all(request.path != "/hidden" for request in requests)


@pytest.mark.parametrize(("data", "paths"), READ.values(), ids=READ)
def test_forms_with_one_reading_are_read(data: bytes, paths: list[str]) -> None:
    requests, refusal = read(data)

    assert ([request.path for request in requests], refusal) == (paths, "")


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_the_server_refuses_them_once_and_ends_the_connection(
    api: ServerInThread, data: bytes
) -> None:
    codes = statuses(exchange(api, data))

    assert len(codes) <= 1
    assert all(400 <= code < 500 for code in codes)


PIECES = st.sampled_from(
    [
        *(b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"0", b"1", b"\x00", b"\xff", b"chunked"),
        *(b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\n", b"Host: a\r\n", b"Content-Length: 5\r\n"),
        *(
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: upgrade\r\nUpgrade: x\r\n",
            b"0\r\n\r\n",
        ),
        *(b"Expect: 100-continue\r\n", b"1;a=b\r\nx\r\n", b"hello", b"Content-Length: 0\r\n"),
    ]
)


@settings(max_examples=400)
@given(st.lists(PIECES | st.binary(max_size=4), max_size=14).map(b"".join), st.data())
@example(REFUSED["CL.TE"], None)
def test_requests_are_the_same_however_the_bytes_arrive(
    data: bytes, draws: st.DataObject | None
) -> None:
    sizes = (
        (1,) * 50 if draws is None else tuple(draws.draw(st.lists(st.integers(0, 20), max_size=9)))
    )
    whole, pieces = read(data), read(data, sizes)

    shown = [
        [(r.method, r.target, r.headers, r.body, r.is_last) for r in requests]
        for requests, _ in (whole, pieces)
    ]
    assert shown[0] == shown[1]
    assert bool(whole[1]) == bool(pieces[1])


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_bytes_give_requests_or_a_refusal(data: bytes) -> None:
    with suppress(MalformedRequestError):
        RequestReader().feed(data)
