"""Project files of earlier formats, damaged ones, and those that someone else made."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from awatt.errors import AwattError
from awatt.server import opening
from awatt.server.backup import backup_path, write_backup
from awatt.server.project_file import ProjectFile
from awatt.server.store import ProjectStore

from .attack_files import FORMAT_1, PROJECTS, try_project, write_old, write_sound
from .conftest import SMALL, make_client


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound(tmp_path_factory.mktemp("sound") / "project.sqlite")


@pytest.mark.parametrize("case", PROJECTS)
def test_a_project_file_from_someone_else_writes_files_and_runs_sql(case: str, sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    PROJECTS[case](path)
    assert try_project(path) == []


@pytest.mark.parametrize("script", ["", FORMAT_1, "PRAGMA user_version = 3"])
def test_a_project_of_an_earlier_format_is_read(tmp_path: Path, script: str) -> None:
    path = tmp_path / "old.sqlite"
    write_old(path, script)
    for _ in range(2):  # the second time it has the new format
        store = ProjectStore(path)
        content = store.content()
        assert [(each.name, each.threshold) for each in content.aspects] == [
            ("food", 0.1234567890123456),
            ("service", None),
        ]
        assert [(each.text, each.aspects, each.corrected) for each in content.examples] == [
            ("Tasty soup.", (1,), False),
            ("A slow waiter.", (2,), True),
        ]
        assert (content.threshold, content.undo, store.version().revision) == (0.25, None, 7)
        assert [text for _, _, text in store.sentences()] == ["Cold soup.", "A rude waiter."]
        assert store.fields() == {1: {"stars": 4}, 2: {}}
        store.close()
    store = ProjectStore(path)
    store.load_reviews([({}, ["Three."])])
    store.undo()
    assert [text for _, _, text in store.sentences()] == ["Cold soup.", "A rude waiter."]


def test_another_schema_needs_another_format() -> None:
    objects = "\n".join(sorted(map(str, opening._expected_objects())))
    assert (opening.FORMAT, hashlib.sha256(objects.encode()).hexdigest()[:16]) == (4, "f76e35ac0b4d4c99")


def test_a_connection_attaches_nothing_and_changes_no_table(sound: Path) -> None:
    store = ProjectStore(sound)
    for statement in ("ATTACH ':memory:' AS x", "CREATE TABLE x (y)", "DROP TABLE aspects", "PRAGMA writable_schema=1"):
        with pytest.raises(sqlite3.DatabaseError, match=r"authorized|too many attached"):
            store._connection.execute(statement)
    assert store._connection.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED) == 0
    store.close()


def test_a_threshold_is_undone_to_the_last_digit(tmp_path: Path) -> None:
    store = ProjectStore(tmp_path / "p.sqlite")
    food = store.add_aspect("food")
    store.set_threshold(1 / 3, food)
    store.rename_aspect(food, "meals")
    store.set_threshold(0.5, food)
    store.undo()
    assert store.content().aspects[0].threshold == 1 / 3


@pytest.mark.skipif(os.name != "posix", reason="needs the permissions of files")
def test_others_on_this_machine_can_read_the_project(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = ProjectStore(tmp_path / "p.sqlite")
        store.add_aspect("food")
        store.back_up()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert set(modes) >= {"p.sqlite", "p.sqlite-wal", "p.sqlite.backup"}
        assert set(modes.values()) == {0o600}
        store.close()
        (tmp_path / "p.sqlite").chmod(0o664)
        ProjectStore(tmp_path / "p.sqlite").close()
        assert stat.S_IMODE((tmp_path / "p.sqlite").stat().st_mode) == 0o660
    finally:
        os.umask(before)


def test_a_damaged_page_is_found_at_the_start_and_the_backup_is_offered(sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    store = ProjectStore(path)
    wanted = store.content()
    store.back_up()
    store.close()
    PROJECTS["a damaged page"](path)
    with pytest.raises(AwattError, match=r"is damaged .*Its backup of 20.* --project '.*project.sqlite.backup'"):
        ProjectStore(path)
    assert ProjectStore(backup_path(path)).content() == wanted


def test_a_new_project_does_not_replace_the_backup_of_a_lost_one(sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    store = ProjectStore(path)
    store.back_up()
    lost = store.project_id
    store.close()
    path.unlink()
    store = ProjectStore(path)
    store.back_up()  # there is nothing yet
    store.add_aspect("food")
    store.back_up()
    store.close()
    assert len(ProjectStore(backup_path(path)).content().aspects) == 1
    assert len(ProjectStore(tmp_path / f"project.sqlite.backup.{lost}").content().aspects) == 2


def test_a_locked_project_says_so_and_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LOCK_TIMEOUT", 0.1)
    with make_client(tmp_path) as client:
        other = sqlite3.connect(tmp_path / "project.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        response = client.post("/v1/aspects", json={"name": "food"})
        assert (response.status_code, response.json()["code"]) == (503, "project_unavailable")
        assert "another process has locked the project. Try again" in response.json()["error"]
        assert response.headers["retry-after"] == "1"
        assert client.get("/v1/project").status_code == 200  # reading goes on
        other.execute("ROLLBACK")
        assert client.post("/v1/aspects", json={"name": "food"}).status_code == 200


def test_a_full_disk_gives_507_and_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with make_client(tmp_path) as client:
        connection = client.guard.app.state.service.store._connection  # type: ignore[attr-defined]
        connection.set_authorizer(None)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite says what it says on a full disk
        reviews = "\n".join(["A sentence that needs some space." * 9] * 90)
        raw = {"content-type": "application/octet-stream"}
        response = client.post("/v1/project/reviews?format=txt&split=false", content=reviews, headers=raw)
        assert (response.status_code, response.json()["code"]) == (507, "disk_full")
        assert "Free some space" in response.json()["error"]
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["code"]) == (507, "disk_full")
        assert str(tmp_path) not in ready.text
        connection.execute("PRAGMA max_page_count = 1000000")
        assert client.post("/v1/aspects", json={"name": "food"}).status_code == 200
        assert client.get("/health/ready").status_code == 200
        monkeypatch.setattr("awatt.server.project_file.MIN_FREE", 2**62)
        assert client.get("/health/ready").status_code == 507


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_what_is_no_backup_does_not_stop_backups(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "project.sqlite"
    if content is None:  # a database without our tables
        sqlite3.connect(backup_path(path)).execute("CREATE TABLE meta (name, value)").connection.close()
    else:
        backup_path(path).write_bytes(content)
    store = ProjectStore(path)
    store.add_aspect("food")
    store.back_up()
    store.close()
    assert len(ProjectStore(backup_path(path)).content().aspects) == 1
    assert (tmp_path / "project.sqlite.backup.other").is_file()


def test_a_damaged_project_does_not_replace_its_backup(sound: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    store = ProjectStore(path)
    store.back_up()
    kept = backup_path(path).read_bytes()
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 4] = b"\x5a" * 4096
    path.write_bytes(content)  # in place, as a bad disk does it
    store._backed_up = -1
    store.back_up()
    assert backup_path(path).read_bytes() == kept
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".part")] == []


def test_a_project_that_cannot_be_opened_or_backed_up_stays_open(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(sound, tmp_path))
    opened: list[sqlite3.Connection] = []
    really_connect = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(really_connect(*arguments, **options))
        return opened[-1]

    def is_closed(connection: sqlite3.Connection) -> bool:
        try:
            connection.total_changes  # noqa: B018 (raises once it is closed)
        except sqlite3.ProgrammingError:
            return True
        return False

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("unable to open")

    monkeypatch.setattr(sqlite3, "connect", connect)
    opening._expected_objects.cache_clear()
    with pytest.raises(AwattError, match="at most 0"):
        ProjectStore(path, replace(SMALL, examples=0))
    assert len(opened) == 2  # one in memory, for the tables that a project has
    with monkeypatch.context() as patched:
        patched.setattr(ProjectFile, "_run", fail)
        with pytest.raises(AwattError, match="could not be read"):
            ProjectStore(path)
    with monkeypatch.context() as patched:
        patched.setattr("awatt.server.backup.find_damage", fail)
        assert not write_backup(path, "id")
    with monkeypatch.context() as patched:
        connect_again = iter((opening.connect, fail))
        patched.setattr("awatt.server.backup.connect", lambda given: next(connect_again)(given))
        assert not write_backup(path, "id")
    with monkeypatch.context() as patched:
        patched.setattr(opening, "MAX_VALUE", "many")
        with pytest.raises(TypeError):
            opening.connect(path)
    assert len(opened) == 7
    assert all(map(is_closed, opened))
