"""Several projects on one server: listed, opened, created; each request gets the one that its page shows."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from awatt.server.access import Access
from awatt.server.app import create_app
from awatt.server.projects import MAX_OPEN
from awatt.server.run import find_project
from awatt.server.store import ProjectStore

from .conftest import HOST, TOKEN


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    """A server with a folder of projects."""
    hotels = ProjectStore(tmp_path / "hotels.sqlite")
    hotels.add_aspect("bed")
    hotels.close()
    (tmp_path / "notes.txt").write_text("no project")
    app = create_app(ProjectStore(tmp_path / "project.sqlite"), Access(TOKEN, frozenset({HOST})), folder=tmp_path)
    with TestClient(app, f"http://{HOST}", headers={"authorization": f"Bearer {TOKEN}"}) as made:
        yield made


def aspects(client: Any, project: str | None = None) -> list[str]:
    found = client.get("/v1/project", headers={"x-awatt-project": project} if project else {}).json()
    return [aspect["name"] for aspect in found["aspects"]]


def test_projects_are_listed_and_each_tab_changes_its_own(client: Any) -> None:
    assert client.get("/v1/projects").json() == {"names": ["hotels", "project"], "many": True}
    opened = client.post("/v1/projects", json={"name": "hotels"}).json()
    assert opened["name"] == "hotels"
    client.post("/v1/aspects", json={"name": "pool"}, headers={"x-awatt-project": opened["project"]})
    client.post("/v1/aspects", json={"name": "food"})  # a client that names none gets the first
    assert (aspects(client), aspects(client, opened["project"])) == (["food"], ["bed", "pool"])
    assert client.post("/v1/projects", json={"name": "hotels"}).json() == opened  # it is open already
    lost = client.post("/v1/aspects", json={"name": "x"}, headers={"x-awatt-project": "unknown"})
    assert lost.status_code == 409
    for path, status in (("aspects", 409), ("project/export/examples.jsonl", 409), ("project/version", 200)):
        assert client.get(f"/v1/{path}", headers={"x-awatt-project": "unknown"}).status_code == status


def test_a_new_project_is_created_and_kept(client: Any, tmp_path: Path) -> None:
    made = client.post("/v1/projects", json={"name": "Été 2024"}).json()
    client.post("/v1/aspects", json={"name": "beach"}, headers={"x-awatt-project": made["project"]})
    assert client.get("/v1/projects").json()["names"] == ["hotels", "project", "Été 2024"]
    again = ProjectStore(tmp_path / "Été 2024.sqlite")  # as another process opens it
    assert [each.name for each in again.content().aspects] == ["beach"]
    again.close()


def test_a_copy_of_an_open_project_is_refused(client: Any, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "hotels.sqlite", tmp_path / "copy.sqlite")
    assert client.post("/v1/projects", json={"name": "hotels"}).status_code == 200
    response = client.post("/v1/projects", json={"name": "copy"})
    assert (response.status_code, response.json()["error"]) == (409, "'copy' is a copy of 'hotels', which is open.")


@pytest.mark.parametrize("name", ["", "../hotels", "a/b", "/etc/passwd", ".hidden", "a\0b", "x" * 81, "a ", "con\n"])
def test_a_name_that_is_no_file_here_is_refused(client: Any, name: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.parent.rglob("*.sqlite"))
    response = client.post("/v1/projects", json={"name": name})
    assert response.status_code == 422
    assert sorted(tmp_path.parent.rglob("*.sqlite")) == before


def test_another_programs_database_is_refused_without_its_path(client: Any, tmp_path: Path) -> None:
    (tmp_path / "other.sqlite").write_text("not a database" * 1000)
    response = client.post("/v1/projects", json={"name": "other"})
    assert response.status_code == 422
    assert "other.sqlite" in response.json()["error"]
    assert str(tmp_path) not in response.text


def test_the_number_of_open_projects_is_limited(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_OPEN > 2
    monkeypatch.setattr("awatt.server.projects.MAX_OPEN", 2)
    assert client.post("/v1/projects", json={"name": "hotels"}).status_code == 200
    assert client.post("/v1/projects", json={"name": "third"}).status_code == 409


def test_projects_opened_at_once_exceed_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.server.projects.MAX_OPEN", 3)
    store = ProjectStore(tmp_path / "project.sqlite")
    projects = create_app(store, Access(TOKEN, frozenset({HOST})), folder=tmp_path).app

    async def open_at_once() -> list[Any]:
        opened = await asyncio.gather(*(projects.open(f"p{n}") for n in range(5)), return_exceptions=True)
        for app in list(projects._apps.values())[1:]:
            await app.service.close()
        return opened

    opened = asyncio.run(open_at_once())
    store.close()
    assert [str(each) for each in opened[2:]] == ["3 projects are open already. Start awatt serve again."] * 3
    assert sorted(path.name for path in tmp_path.glob("p?.sqlite")) == ["p0.sqlite", "p1.sqlite"]


def test_a_server_of_one_file_lists_and_opens_no_other(tmp_path: Path) -> None:
    ProjectStore(tmp_path / "secret.sqlite").close()
    app = create_app(ProjectStore(tmp_path / "mine.sqlite"), Access(TOKEN, frozenset({HOST})))
    with TestClient(app, f"http://{HOST}", headers={"authorization": f"Bearer {TOKEN}"}) as client:
        assert client.get("/v1/projects").json() == {"names": ["mine"], "many": False}
        assert client.post("/v1/projects", json={"name": "mine"}).status_code == 200
        assert client.post("/v1/projects", json={"name": "secret"}).status_code == 409


def test_a_folder_is_given_in_place_of_a_file(tmp_path: Path) -> None:
    assert find_project(tmp_path) == tmp_path / "project.sqlite"
    assert find_project(tmp_path / "a.sqlite") == tmp_path / "a.sqlite"


def test_a_read_only_link_shows_its_project_and_no_other(client: Any) -> None:
    opened = client.post("/v1/projects", json={"name": "hotels"}).json()
    mine = {"x-awatt-project": opened["project"]}
    path = client.post("/v1/link", json={"read_only": True}, headers=mine).json()["path"]
    first = client.get("/v1/project").json()["project"]
    reader = TestClient(client.app, f"http://{HOST}")
    location = reader.get(path, follow_redirects=False).headers["location"]
    reader.headers["x-awatt-key"] = location.partition("key=")[2]
    assert reader.get("/v1/projects").json() == {"names": ["hotels"], "many": False}
    assert aspects(reader) == aspects(reader, first) == ["bed"]  # whatever the request says
    assert reader.post("/v1/projects", json={"name": "project"}).status_code == 403


def test_a_link_for_an_unknown_project_shows_the_first_one(client: Any) -> None:
    body, unknown = {"read_only": True}, {"x-awatt-project": "unknown"}
    refused = client.post("/v1/link", json=body, headers=unknown)
    elsewhere = client.get("/v1/aspects", headers=unknown)
    assert (refused.status_code, refused.json()) == (409, elsewhere.json())
    hotels = client.post("/v1/projects", json={"name": "hotels"}).json()["project"]
    assert client.post("/v1/link", json=body, headers={"x-awatt-project": hotels}).status_code == 200
    assert [link.project for link in client.app.access.links.values()] == [hotels]
    assert client.post("/v1/link", json=body).status_code == 200  # a client that names none gets the first
