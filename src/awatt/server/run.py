"""Starting the server: address, token, project file, and a graceful stop."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import sys
from contextlib import ExitStack, closing
from pathlib import Path

from awatt.detector.models import FAST, load_model
from awatt.errors import AwattError
from awatt.records.formats import reason
from awatt.server.access import Access, check_public_url, check_token
from awatt.server.app import create_app
from awatt.server.limits import Limits
from awatt.server.security import Guard
from awatt.server.store import ProjectStore

TOKEN_VARIABLE = "AWATT_TOKEN"
USUAL_PORTS = (":80", ":443")  # of http and https: browsers omit them
STOP_SECONDS = 5  # for running requests to finish when the server is stopped


def default_project() -> Path:
    """The file in the platform's folder for user data."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "awatt" / "project.sqlite"


def find_project(given: Path | None) -> Path:
    """The file to open. Only the default folder is created; a given folder, or that of a given file, must exist."""
    path = (given or default_project()).absolute()
    if path.is_dir():
        path /= default_project().name
    if given is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            advice = "Name another file with --project."
            raise AwattError(f"{path.parent}: cannot be created ({error.strerror or error}). {advice}") from None
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


def choose_token(host: str, public_url: str | None = None) -> str:
    """The token of the environment, or on loopback a random one."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token:
        return check_token(token, TOKEN_VARIABLE)
    if not is_loopback(host) or public_url:
        reached = f"--public-url {public_url}" if public_url else f"the address {host}"
        advice = f"Set {TOKEN_VARIABLE} to a long random text, or omit {'--public-url' if public_url else '--host'}."
        raise AwattError(f"{reached} can be reached from other machines, so a token is needed. {advice}")
    return secrets.token_urlsafe(32)


def listen(host: str, port: int) -> socket.socket:
    """A socket that is already listening, so that a link opened immediately waits instead of being refused."""
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio disables Nagle's algorithm only for a socket with an explicit protocol; without, responses take 40 ms.
        listener = socket.socket(kind[0], kind[1], kind[2] or socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(kind[4])
            listener.listen(128)
        except BaseException:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        advice = "Choose another port with --port, or 0 for a free one."
        raise AwattError(f"{host}, port {port}: cannot listen ({reason(error)}). {advice}") from None
    return listener


def allowed_hosts(host: str, port: int, extra: list[str], public_url: str | None = None) -> frozenset[str]:
    """The Host headers that are accepted: names with a port, and those with a usual one without it, as browsers do."""
    names = {*extra, *(("127.0.0.1", "localhost", "::1") if is_loopback(host) else ())}
    if host not in ("0.0.0.0", "::"):
        names.add(host)
    hosts = {_with_port(name, port) for name in names}
    hosts |= {each.rpartition(":")[0] for each in hosts if each.endswith(USUAL_PORTS)}
    return frozenset(each.lower() for each in hosts | ({public_url.partition("://")[2]} if public_url else set()))


def _with_port(name: str, port: int) -> str:
    """As a Host header has it: 127.0.0.1:8377, [::1]:8377. A port that the name has already stays."""
    if name.count(":") > 1 and not name.startswith("["):
        name = f"[{name}]"
    return name if ":" in name.rpartition("]")[2] else f"{name}:{port}"


def make_server(
    host: str,
    port: int,
    project: Path | None,
    extra_hosts: list[str],
    model: str | Path = FAST,
    public_url: str | None = None,
) -> tuple[Guard, socket.socket, str, Path]:
    """The application, its socket, the link that opens the page, and the project's file."""
    load_model(model)  # says now what is wrong with it
    public_url = None if public_url is None else check_public_url(public_url)
    token = choose_token(host, public_url)
    if host in ("0.0.0.0", "::") and not extra_hosts and not public_url:
        advice = "Add the name under which the server is reached: --allow-host reviews.example.org"
        raise AwattError(f"--host {host} means every address of this machine. {advice}")
    path = find_project(project)
    folder = path.parent if project is None or project.is_dir() else None  # the projects of others are not listed
    with ExitStack() as opened:  # closed if anything below fails
        listener = opened.enter_context(listen(host, port))
        bound, port = listener.getsockname()[:2]
        hosts = allowed_hosts(host, port, extra_hosts, public_url)
        access = Access(token, hosts, port, public_url)
        store = opened.enter_context(closing(ProjectStore(path)))
        app = create_app(store, access, Limits(), model, folder)
        opened.pop_all()
    name = _with_port(bound, port)
    if name not in hosts:  # with our own port, where there is one
        name = min(hosts, key=lambda each: (not each.endswith(f":{port}"), each))
    return app, listener, f"{public_url or f'http://{name}'}/?token={access.new_link()}", path


def threshold_note(model: str | Path) -> str | None:
    """What to say of a model whose threshold decides for each sentence anew, which the page's sliders cannot show."""
    loaded = load_model(model)
    if not loaded.decides_per_sentence:
        return None
    name = f"{model}: the {loaded.threshold_name} threshold decides for each sentence anew"
    return f"{name}. The page and the API use the paper's static threshold instead; 'awatt detect' uses its own."


def run(app: Guard, listener: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the running requests."""
    import uvicorn

    from awatt.server.connections import TimedProtocol

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # the path of a link contains a secret
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        http=TimedProtocol,
        ws="none",
        proxy_headers=False,  # nothing depends on what a proxy says of the client
        h11_max_incomplete_event_size=64 * 1024,
    )
    uvicorn.Server(config).run(sockets=[listener])
