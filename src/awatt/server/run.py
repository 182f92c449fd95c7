"""Start the server: the address, the secrets, the project's file, and a stop that loses nothing."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import sys
from pathlib import Path

from awatt.detector.models import load_model
from awatt.errors import AwattError
from awatt.server.app import create_app
from awatt.server.limits import Limits
from awatt.server.security import Access, Guard
from awatt.server.store import ProjectStore

TOKEN = "AWATT_TOKEN"
SHORTEST = 16  # characters of a token that somebody chose
STOP_SECONDS = 5  # for requests under way when the server is stopped


def default_project() -> Path:
    """In the user's data folder, as the platform has it."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "awatt" / "project.sqlite"


def find_project(given: Path | None) -> Path:
    """The file to open. Only the user's data folder is made; one that was named must be there."""
    path = (given or default_project()).absolute()
    if given is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            advice = "Name another file with --project."
            raise AwattError(f"{path.parent}: cannot be made ({error.strerror or error}). {advice}") from None
    if not path.parent.is_dir():
        raise AwattError(f"{given}: there is no folder '{path.parent}'. Create it first.")
    return path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_token(host: str) -> str:
    """That of the environment, or a random one; another address than loopback needs one that was chosen."""
    token = os.environ.get(TOKEN, "")
    if token and len(token) < SHORTEST:
        raise AwattError(
            f"{TOKEN} has {len(token)} characters, but at least {SHORTEST} are needed. Choose a longer one."
        )
    if not token and not is_loopback(host):
        advice = f"Set {TOKEN} to a long random text, or leave --host out."
        raise AwattError(f"the address {host} can be reached by others, so a token is needed. {advice}")
    return token or secrets.token_urlsafe(32)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens already: who opens the link at once waits, and is not refused."""
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With its protocol named, asyncio turns Nagle's algorithm off: else every answer waits for 40 ms.
        bound = socket.socket(kind[0], kind[1], kind[2] or socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(kind[4])
        bound.listen(128)
    except OSError as error:
        advice = "Choose another one with --port, or 0 for any."
        raise AwattError(f"{host}, port {port}: cannot listen ({error.strerror or error}). {advice}") from None
    return bound


def hosts_of(host: str, port: int, extra: list[str]) -> frozenset[str]:
    """The Host headers that are answered."""
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set()
    if not is_loopback(host) and host not in ("0.0.0.0", "::"):
        names.add(f"[{host}]" if ":" in host else host)
    return frozenset({f"{name}:{port}" for name in names} | {n if ":" in n else f"{n}:{port}" for n in extra})


def make_server(
    host: str, port: int, project: Path | None, allowed: list[str], model: Path | None = None
) -> tuple[Guard, socket.socket, str, Path]:
    """The application, its socket, the link that opens the page, and the project's file."""
    load_model(model)  # says now what is wrong with it
    token = choose_token(host)
    if not is_loopback(host) and host in ("0.0.0.0", "::") and not allowed:
        raise AwattError(f"--host {host} has no name. Say under which it is reached: --allow-host reviews.example.org")
    path = find_project(project)
    bound = listen(host, port)
    port = bound.getsockname()[1]
    hosts = hosts_of(host, port, allowed)
    access = Access(token, hosts, f"awatt_{port}")
    app = create_app(ProjectStore(path), access, Limits(), model)
    name = f"127.0.0.1:{port}" if f"127.0.0.1:{port}" in hosts else sorted(hosts)[0]
    return app, bound, f"http://{name}/?token={access.new_link()}", path


def threshold_note(model: Path | None) -> str | None:
    """What to say of a model whose threshold decides for each sentence anew, which the page's sliders cannot show."""
    loaded = load_model(model)
    n_aspects = loaded.trained_with[0].n_way
    if loaded.auto_threshold(n_aspects) is not None:
        return None
    name = f"{model}: the {loaded.threshold_name} threshold decides for each sentence anew"
    return f"{name}. The page and the API use the paper's static threshold instead; 'awatt detect' uses its own."


def run(app: Guard, bound: socket.socket) -> None:
    """Until SIGTERM or Ctrl-C; requests under way are finished."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # paths of links hold a secret
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        limit_concurrency=512,
        h11_max_incomplete_event_size=64 * 1024,
    )
    uvicorn.Server(config).run(sockets=[bound])
