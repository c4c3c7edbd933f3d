"""Secrets on disk: only their owner reads the files of `up`, also where a file existed before."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.apiserver.server import ApiServer, make_credentials
from bayplan.cli.commands.clusters import ClusterEntry, claim, folder_of, write_entry
from bayplan.cli.commands.detached_server import DetachedServer
from bayplan.cli.commands.up import write_kubeconfig
from bayplan.cluster.private_files import make_private_folder, open_private, write_private
from bayplan.errors import InputError
from bayplan.web.tls import _made_in

FOLDER, FILE = 0o700, 0o600


def mode(path: Path) -> int:
    """The permission bits of a path."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """Give new files every permission that is not removed explicitly."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every existing file belong to another user."""
    real = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)


async def serve_once(folder: Path) -> None:
    """Run a server that stores some objects, and check the modes while it runs, too."""
    made = make_credentials(folder, ["localhost"])
    server = ApiServer(folder, token=made.token, certificate=made.certificate)
    await server.start()
    try:
        server.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        await server.store.safe()
        write_kubeconfig(server, None, folder)
        assert (folder / "bayplan.db-wal").exists()
        assert_private(folder)
    finally:
        await server.stop()


def assert_private(folder: Path) -> None:
    assert mode(folder) == FOLDER
    assert {path.name: oct(mode(path)) for path in folder.iterdir()} == {
        path.name: oct(FILE) for path in folder.iterdir()
    }


def run_server(folder: Path) -> None:
    asyncio.run(serve_once(folder))


def test_data_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"

    run_server(folder)

    assert_private(folder)
    assert mode(folder.parent) == FOLDER
    names = {path.name for path in folder.iterdir()}
    assert {"bayplan.db", "token", "tls.key", "tls.crt", "names", "kubeconfig"} <= names


def test_files_of_an_earlier_version_become_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    run_server(folder)
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)

    run_server(folder)

    assert_private(folder)


def test_files_beside_the_database_become_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    database = sqlite3.connect(folder / "bayplan.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE counter (last INTEGER)")
    for name in ("bayplan.db", "bayplan.db-wal", "bayplan.db-shm"):
        (folder / name).chmod(0o644)
    os.link(folder / "bayplan.db-wal", tmp_path / "wal")
    database.close()
    for name in ("bayplan.db-wal", "bayplan.db-shm"):
        (folder / name).touch(mode=0o644)

    run_server(folder)

    assert_private(folder)


@pytest.mark.parametrize("name", ["bayplan.db", "bayplan.db-wal", "token", "tls.key", "kubeconfig"])
def test_files_of_another_user_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.geteuid()
    folder = tmp_path / "data"
    run_server(folder)
    victim = folder / name
    victim.touch(mode=0o600)
    inode = victim.stat().st_ino

    def another(found: os.stat_result) -> os.stat_result:
        if found.st_ino != inode:
            return found
        values = list(found)
        values[stat.ST_UID] = real + 1
        return os.stat_result(values)

    before_fstat, before_lstat = os.fstat, os.lstat
    monkeypatch.setattr(os, "fstat", lambda *args, **kw: another(before_fstat(*args, **kw)))
    monkeypatch.setattr(Path, "lstat", lambda path: another(before_lstat(path)))

    with pytest.raises(InputError) as caught:
        run_server(folder)

    assert str(caught.value) == (
        f"{victim}: expected a file of the user who runs this command (uid {real}); got one of uid {real + 1}"
    )


@pytest.mark.usefixtures("another_user")
def test_a_data_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()

    with pytest.raises(InputError, match="expected a folder of the user who runs this command"):
        ApiServer(folder)

    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("bits", [0o1777, 0o777])
def test_a_folder_that_all_users_share_is_refused_and_stays(bits: int, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(bits)

    with pytest.raises(InputError, match=f"all users share .mode {bits:04o}."):
        make_private_folder(folder)

    assert mode(folder) == bits


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / "token"
    link.symlink_to(victim)

    with pytest.raises(OSError, match="symbolic links"):
        open_private(link)
    write_private(link, b"secret")

    assert victim.read_text() == "precious"
    assert link.read_bytes() == b"secret"
    assert not link.is_symlink()


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "log"
    os.mkfifo(pipe)

    with pytest.raises((InputError, OSError)):
        open_private(pipe)


def test_state_folder_entry_and_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    entry = claim("mine", next_free=False)
    folder = folder_of("mine")
    for path in (folder.parent, folder):
        path.chmod(0o755)
    log = folder / "log"
    log.touch(mode=0o644)
    (folder / "cluster.json").chmod(0o644)

    write_entry(ClusterEntry("mine", entry.pid, entry.process_started, page="http://x/#token"))
    claim("other", next_free=False)
    os.close(open_private(log, os.O_WRONLY | os.O_APPEND))

    assert [mode(path) for path in (folder.parent.parent, folder.parent, folder)] == [FOLDER] * 3
    assert [mode(path) for path in (log, folder / "cluster.json", folder.parent / ".lock")] == [
        FILE
    ] * 3


def test_the_log_of_a_detached_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch(mode=0o644)
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        DetachedServer(send, tmp_path / "output").be_ready({}, log)
        os._exit(0)
    os.close(send)
    os.waitpid(child, 0)
    os.close(receive)

    assert mode(log) == FILE


def test_a_kubeconfig_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    kubeconfig = folder / "config"
    server = ApiServer()
    write_kubeconfig(server, kubeconfig, tmp_path)
    kubeconfig.chmod(0o644)

    write_kubeconfig(server, kubeconfig, tmp_path)

    assert mode(kubeconfig) == FILE
    assert mode(folder) == 0o755  # a folder of the user is not changed
    assert [path.name for path in folder.iterdir()] == ["config"]


def test_the_key_of_run(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    folder.mkdir()
    (folder / "kube-scheduler.key").touch(mode=0o644)

    _, key = _made_in(folder)

    assert mode(key) == FILE
    assert b"PRIVATE KEY" in key.read_bytes()
