"""HTTP/1.1: responses in any pieces; requests as bytes."""

import pytest

from bayplan.kube.http1 import ResponseReader, make_request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def read(*pieces: bytes) -> ResponseReader:
    reader = ResponseReader()
    for piece in pieces:
        reader.feed(piece)
    return reader


@pytest.mark.parametrize(
    ("response", "body"),
    [
        pytest.param(HEAD + b"Content-Length: 5\r\n\r\nhello", b"hello", id="a length"),
        pytest.param(HEAD + b"Content-Length: 0\r\n\r\n", b"", id="no body"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", b"", id="a status without a body"),
        pytest.param(
            HEAD + CHUNKED + b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
            b"hello world",
            id="chunks, one with an extension",
        ),
        pytest.param(
            HEAD + CHUNKED + b"1\r\n\r\r\n1\r\n\n\r\n0\r\nChecksum: 1\r\n\r\n",
            b"\r\n",
            id="chunks with line ends and a trailer",
        ),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 1\r\n\r\nx",
            b"x",
            id="an interim response",
        ),
    ],
)
def test_response_is_read_however_it_is_cut(response: bytes, body: bytes) -> None:
    for cut in range(1, len(response)):
        reader = read(response[:cut], response[cut:])
        assert (reader.take(), reader.is_complete) == (body, True), cut
    reader = read(*(response[i : i + 1] for i in range(len(response))))
    assert (reader.take(), reader.is_complete) == (body, True)


def test_body_without_a_length_ends_with_the_connection() -> None:
    reader = read(HEAD + b"\r\nhel", b"lo")

    assert not reader.is_complete
    reader.end()
    assert (reader.take(), reader.is_complete) == (b"hello", True)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(HEAD, id="within the head"),
        pytest.param(HEAD + b"Content-Length: 5\r\n\r\nhell", id="within a body"),
        pytest.param(HEAD + CHUNKED + b"5\r\nhello\r\n", id="before the last chunk"),
    ],
)
def test_response_that_breaks_off_is_an_error(response: bytes) -> None:
    with pytest.raises(ValueError, match="before the end"):
        read(response).end()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another protocol"),
        pytest.param(HEAD + CHUNKED + b"none\r\n", id="a chunk without a size"),
    ],
)
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"HTTP|invalid literal"):
        read(data)


def test_head_says_when_to_repeat_and_whether_the_connection_is_closed() -> None:
    reader = read(b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nConnection: Close\r\n\r\n")

    assert reader.head is not None
    assert (reader.head.code, reader.head.retry_after_s, reader.head.is_last) == (429, 3.0, True)


def test_request_as_bytes() -> None:
    assert make_request("POST", "/x", {"Host": "a"}, b"{}") == (
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert make_request("GET", "/x", {}) == b"GET /x HTTP/1.1\r\n\r\n"
