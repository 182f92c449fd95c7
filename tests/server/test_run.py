"""Starting the server: addresses, tokens, names, files."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from awatt.errors import AwattError
from awatt.server.access import Access
from awatt.server.run import allowed_hosts, choose_token, default_project, is_loopback, listen, make_server


def test_only_loopback_works_without_a_chosen_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWATT_TOKEN", raising=False)
    assert choose_token("127.0.0.1") != choose_token("127.0.0.1")
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        assert not is_loopback(host)
        with pytest.raises(AwattError, match="AWATT_TOKEN"):
            choose_token(host)
    monkeypatch.setenv("AWATT_TOKEN", "short")
    with pytest.raises(AwattError, match="5 characters"):
        choose_token("127.0.0.1")
    monkeypatch.setenv("AWATT_TOKEN", "long-enough-for-this")
    assert choose_token("0.0.0.0") == "long-enough-for-this"


def test_hosts_are_an_exact_list() -> None:
    assert allowed_hosts("127.0.0.1", 8377, []) == {"127.0.0.1:8377", "localhost:8377", "[::1]:8377"}
    assert "127.0.0.2:8377" in allowed_hosts("127.0.0.2", 8377, [])
    assert allowed_hosts("0.0.0.0", 8377, ["reviews.example.org", "other.org:81"]) == {
        "reviews.example.org:8377",
        "other.org:81",
    }


def test_an_ipv6_name_gets_no_port() -> None:
    assert allowed_hosts("0.0.0.0", 8377, ["[fe80::1]", "FE80::2", "[fe80::3]:81"]) == {
        "[fe80::1]:8377",
        "[fe80::2]:8377",
        "[fe80::3]:81",
    }
    assert "[fe80::4]" in allowed_hosts("fe80::4", 80, [])


def test_port_80_refuses_every_browser() -> None:
    """Which omits the usual port in Host and Origin."""
    hosts = allowed_hosts("127.0.0.1", 80, ["Reviews.example.org"])
    assert {"127.0.0.1", "127.0.0.1:80", "[::1]", "reviews.example.org", "reviews.example.org:80"} < hosts
    assert {"http://localhost", "http://reviews.example.org"} < Access("", hosts, 80).origins
    hosts = allowed_hosts("0.0.0.0", 8377, ["a.org:443", "b.org"])
    assert hosts == {"a.org:443", "a.org", "b.org:8377"}
    assert Access("", hosts).origins == {"https://a.org", "http://a.org:443", "http://b.org:8377"}


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AwattError, match="--port"):
            listen("127.0.0.1", taken.getsockname()[1])


def test_every_response_takes_40_ms() -> None:
    """asyncio sets TCP_NODELAY only if the socket has an explicit protocol."""
    with listen("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP


def test_the_default_project_is_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_project() == tmp_path / "awatt" / "project.sqlite"


def test_every_address_needs_a_name(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    monkeypatch.setenv("AWATT_TOKEN", "long-enough-for-this")
    done = run("serve", "--host", "0.0.0.0", "--port", "0")
    assert done.code == 2
    assert "--allow-host" in done.err


def test_it_stops_on_sigterm(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from awatt.cli import main; main()", "serve", "--port", "0", "--project"]
    with subprocess.Popen([*command, tmp_path / "p.sqlite"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
        assert "?token=" in lines[0]
        with urllib.request.urlopen(f"{lines[0].split()[-1].partition('?')[0]}health/ready", timeout=300) as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        assert "Traceback" not in process.stderr.read()
    assert not (tmp_path / "p.sqlite-wal").exists()  # closed properly


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("aaaaaaaaaaaaaaaaaaaa", "easy to guess"),
        ("abcdefghijklmnopqrst", "easy to guess"),
        ("1234567890123456", "easy to guess"),
        ("password1password1", "easy to guess"),
        ("geheimesWörterbuch22", "ASCII"),
        ("nine quiet otters 22", "without spaces"),
        ("nine-Quiet-otters\n2", "ASCII"),
    ],
)
def test_weak_tokens_are_refused(monkeypatch: pytest.MonkeyPatch, token: str, words: str) -> None:
    monkeypatch.setenv("AWATT_TOKEN", token)
    with pytest.raises(AwattError, match=words):
        choose_token("127.0.0.1")


def test_half_open_connections_lock_everyone_out(tmp_path: Path) -> None:
    """As many as the server accepts, each with half a request; then one more that is complete."""
    from .browsing import Server

    server = Server(tmp_path / "p.sqlite")
    address = server.base.removeprefix("http://").rstrip("/").split(":")
    idle = []
    try:
        for _ in range(530):
            idle.append(socket.create_connection((address[0], int(address[1])), timeout=300))
            idle[-1].sendall(b"GET /health/live HTTP/1.1\r\nHost: ")
        assert server.ask("GET", "v1/project")[0] == 200
        assert idle[0].recv(1) == b""  # the oldest was closed to make room
    finally:
        for each in idle:
            each.close()
        server.stop()


def test_headers_that_never_end_are_given_up() -> None:
    """Without waiting for the ten seconds: the timer of the connection is called as the loop would call it."""
    import asyncio

    import uvicorn
    from uvicorn.server import ServerState

    from awatt.server.connections import TimedProtocol

    class Quick(TimedProtocol):
        header_seconds = 0.05

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.2)  # longer than the timer: a request that has arrived is not given up
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def talk() -> list[bytes]:
        config = uvicorn.Config(app, http=Quick, lifespan="off", ws="none", log_level="error")
        config.load()
        state = ServerState()
        listening = await asyncio.get_running_loop().create_server(
            lambda: Quick(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        received = []
        for sent in (b"GET / HTTP/1.1\r\nHost: a", b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP"):
            reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
            writer.write(sent)
            received.append(await asyncio.wait_for(reader.read(), 30))  # until the server closes the connection
            writer.close()
        listening.close()
        return received

    half, nothing, whole = asyncio.run(talk())
    assert half == nothing == b""
    assert whole.startswith(b"HTTP/1.1 200")
    assert whole.count(b"HTTP/1.1") == 1
    assert TimedProtocol.waiting == {}


def test_the_link_is_for_the_address_that_was_given(tmp_path: Path) -> None:
    guard, listener, link, _ = make_server("127.0.0.2", 0, tmp_path / "p.sqlite", [])
    with listener:
        assert link.startswith(f"http://127.0.0.2:{listener.getsockname()[1]}/?token=")
    guard.app.state.service.store.close()
    guard, listener, link, _ = make_server("127.0.0.1", 0, tmp_path / "p.sqlite", ["localhost:443"])
    with listener:
        assert link.startswith(f"http://127.0.0.1:{listener.getsockname()[1]}/?token=")
    guard.app.state.service.store.close()
    with pytest.raises(AwattError, match=r"a\.\.b, port 0: cannot listen"):
        listen("a..b", 0)


def test_a_start_that_fails_leaves_its_port_and_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from awatt.server import run as starting
    from awatt.server.store import ProjectStore

    listeners: list[socket.socket] = []
    stores: list[ProjectStore] = []

    def listen_and_keep(host: str, port: int) -> socket.socket:
        listeners.append(listen(host, port))
        return listeners[-1]

    def fail(store: ProjectStore, *_: object) -> None:
        stores.append(store)
        raise AwattError("not now")

    monkeypatch.setattr(starting, "listen", listen_and_keep)
    (tmp_path / "broken.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(AwattError, match=r"broken\.sqlite"):
        make_server("127.0.0.1", 0, tmp_path / "broken.sqlite", [])
    monkeypatch.setattr(starting, "create_app", fail)
    with pytest.raises(AwattError, match="not now"):
        make_server("127.0.0.1", 0, tmp_path / "p.sqlite", [])
    assert [each.fileno() for each in listeners] == [-1, -1]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        stores[0]._connection.execute("SELECT 1")
