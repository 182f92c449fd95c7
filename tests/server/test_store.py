"""The project file: undo, two processes, kill -9, other programs' files."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from awatt.errors import AwattError
from awatt.server.errors import ConflictError, NotFoundError
from awatt.server.journal import MAX_ACTIONS
from awatt.server.limits import Limits
from awatt.server.review_store import MAX_LOADS
from awatt.server.store import ProjectStore
from awatt.server.workbench import Workbench


@pytest.fixture
def store(tmp_path: Path) -> ProjectStore:
    return ProjectStore(tmp_path / "project.sqlite")


def state(store: ProjectStore) -> tuple[object, ...]:
    content = store.content()
    return content.aspects, content.examples, content.threshold, store.sentences(), store.fields()


def reviews(*texts: str) -> list[tuple[dict[str, object], list[str]]]:
    return [({"stars": number}, [text]) for number, text in enumerate(texts)]


def test_every_action_can_be_undone_and_redone(store: ProjectStore) -> None:
    food = store.add_aspect("food", ["Tasty soup.", "Cold 'pasta'; -- \"yes\"."])
    states = [state(store)]
    actions = [
        lambda: store.add_aspect("service", ["A rude waiter.", "Tasty soup."]),
        lambda: store.rename_aspect(food, "meals"),
        lambda: store.set_threshold(0.3),
        lambda: store.set_threshold(0.1, food),
        lambda: store.set_threshold(0.7),
        lambda: store.label_sentence("We left.", []),
        lambda: store.label_sentence("Tasty soup.", [food]),
        lambda: store.remove_example(store.content().examples[0].id),
        lambda: store.load_reviews(reviews("Nice view.", "Loud.")),
        lambda: store.change_aspect(food, "dishes", 0.2),
        lambda: store.remove_aspect(food),
        lambda: store.clear(),
    ]
    for action in actions:
        action()
        states.append(state(store))
    for wanted in reversed(states[:-1]):
        store.undo()
        assert state(store) == wanted
    for wanted in states[1:]:
        store.redo()
        assert state(store) == wanted
    with pytest.raises(ConflictError, match="nothing to redo"):
        store.redo()
    store.undo()
    store.add_aspect("price")
    with pytest.raises(ConflictError, match="nothing to redo"):  # a new action discards what was undone
        store.redo()


def test_the_steps_of_a_slider_are_undone_together(store: ProjectStore) -> None:
    food = store.add_aspect("food")
    for value in (0.4, 0.5, 0.6):
        store.set_threshold(value)
    for value in (0.7, 0.8):
        store.change_aspect(food, None, value)
    store.undo()
    assert (store.content().threshold, store.content().aspects[0].threshold) == (0.6, None)
    store.set_threshold(0.9)  # something was undone in between: a separate step
    store.undo()
    assert store.content().threshold == 0.6
    store.undo()
    assert store.content().threshold is None
    for wanted in (0.6, 0.9):
        store.redo()
        assert store.content().threshold == wanted


def test_an_action_that_changes_nothing_is_not_recorded(store: ProjectStore) -> None:
    food = store.add_aspect("food", ["Tasty soup."])
    store.set_threshold(0.5)
    store.change_aspect(food, None, 0.4)
    store.label_sentence("We left.", [])
    store.undo()
    before = store.content()
    for nothing in (
        lambda: store.label_sentence("Tasty soup.", [food]),
        lambda: store.rename_aspect(food, "food"),
        lambda: store.change_aspect(food, "food", 0.4),
        lambda: store.set_threshold(0.5),
        lambda: store.add_examples(food, ["Tasty soup."]),
        lambda: store.remove_label("Never labelled."),
    ):
        nothing()
        assert store.content() == before  # including its counters, undo and redo
    store.redo()
    assert store.content().examples[-1].text == "We left."


def test_the_last_200_actions_can_be_undone(store: ProjectStore) -> None:
    for number in range(MAX_ACTIONS + 50):
        store.label_sentence(f"Sentence {number}.", [])
        store.label_sentence(f"Sentence {number}.", [])  # changes nothing
    for _ in range(MAX_ACTIONS):
        store.undo()
    assert [example.text for example in store.content().examples] == [f"Sentence {number}." for number in range(50)]
    assert store.content().undo is None
    for _ in range(MAX_ACTIONS):
        store.redo()
    assert len(store.content().examples) == MAX_ACTIONS + 50
    assert store._connection.execute("SELECT count(*) FROM actions").fetchone() == (MAX_ACTIONS,)


def test_loading_and_starting_over_can_be_undone(store: ProjectStore) -> None:
    store.load_sample(reviews("One."), {"food": ["Tasty soup."]})
    sample, counted = state(store), store.version().reviews
    store.clear()
    assert state(store) == ([], [], None, [], {})
    assert store.content().undo == "start over"
    store.undo()
    assert state(store) == sample
    assert store.version().reviews > counted  # clients must load the sentences again
    assert store.content().n_sentences == store.content().n_reviews == 1


def test_the_file_keeps_the_last_loads_only(store: ProjectStore) -> None:
    for number in range(MAX_LOADS + 3):
        store.load_reviews(reviews(f"Load {number}."))
        store.add_aspect(f"after load {number}")
    kept = store._connection.execute("SELECT count(*) FROM sentences").fetchone()[0]
    assert kept == MAX_LOADS
    while store.content().undo:
        store.undo()
    assert [text for _, _, text in store.sentences()] == ["Load 3."]  # and not an empty table
    assert [aspect.name for aspect in store.content().aspects][-1] == "after load 2"
    store.redo()
    store.load_reviews(reviews("Another."))
    while store.content().undo:
        store.undo()
    assert [text for _, _, text in store.sentences()] == ["Load 3."]


def test_sentences_and_their_version_are_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ProjectStore(tmp_path / "p.sqlite"), ProjectStore(tmp_path / "p.sqlite")
    one.load_reviews(reviews("Old."))
    workbench, read = Workbench(one), one.sentences

    def late() -> list[tuple[int, int, str]]:
        two.load_reviews(reviews("New."))
        return read()

    with monkeypatch.context() as patch:
        patch.setattr(one, "sentences", late)
        found = workbench.reviews()
    assert (found.version, found.texts) == (1, ["Old."])
    assert (workbench.reviews().version, workbench.reviews().texts) == (2, ["New."])


def test_loading_again_scans_every_sentence_for_every_review(store: ProjectStore) -> None:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1000
        return 0

    for _ in range(MAX_LOADS):
        store.load_reviews(reviews(*map(str, range(2000))))
    store._connection.set_progress_handler(count, 1000)
    store.load_reviews(reviews("One."))
    assert steps < 200 * 2000


def test_a_stale_id_names_no_sentence_of_other_reviews(store: ProjectStore) -> None:
    store.load_reviews(reviews("Old."))
    [(old, _, _)] = store.sentences()
    store.load_reviews(reviews("New."))
    with pytest.raises(NotFoundError, match="Other reviews"):
        store.sentence_text(old)


def test_another_users_label_is_not_overwritten_unseen(store: ProjectStore) -> None:
    food = store.add_aspect("food")
    store.label_sentence("Cold soup.", [food], seen=None)
    with pytest.raises(ConflictError, match="Look again"):
        store.label_sentence("Cold soup.", [], seen=None)
    store.label_sentence("Cold soup.", [], seen=[food])
    store.label_sentence("Cold soup.", [food])  # without a check
    assert store.content().examples[0].aspects == (food,)


def test_a_failed_action_changes_nothing(store: ProjectStore) -> None:
    store.add_aspect("food", ["Tasty soup."])
    before, version = state(store), store.version()
    with pytest.raises(AwattError, match="blank"):
        store.add_aspect("service", ["A rude waiter.", "  "])
    with pytest.raises(ConflictError, match="already"):
        store.add_aspect(" food ")
    with pytest.raises(NotFoundError):
        store.label_sentence("Tasty soup.", [99])
    assert (state(store), store.version()) == (before, version)
    assert store.content().undo == "add aspect food"


def test_removing_an_aspect_keeps_examples_of_others(store: ProjectStore) -> None:
    food = store.add_aspect("food", ["Tasty soup.", "The waiter brought cold soup."])
    service = store.add_aspect("service", ["The waiter brought cold soup."])
    store.label_sentence("We left.", [])
    store.remove_aspect(food)
    assert [(each.text, each.aspects) for each in store.content().examples] == [
        ("The waiter brought cold soup.", (service,)),
        ("We left.", ()),
    ]


def test_removing_an_aspect_keeps_what_others_have_said(store: ProjectStore) -> None:
    food, service = store.add_aspect("food"), store.add_aspect("service")
    store.label_sentence("Cold soup.", [food], person="Ann")
    store.label_sentence("Cold soup.", [service], person="Bob")
    store.remove_aspect(service)
    (example,) = store.content().examples
    assert (list(example.aspects), example.votes["Ann"]) == ([food], [food])


def test_only_those_who_made_a_label_remove_it(store: ProjectStore) -> None:
    food = store.add_aspect("food")
    store.label_sentence("Cold soup.", [food], person="")  # before Ann gave her name
    store.remove_label("Cold soup.", person="Ann")
    assert store.content().examples == []
    store.label_sentence("Cold soup.", [food], person="Bob")
    before = state(store)
    for person in ("Ann", "", None):
        with pytest.raises(ConflictError, match=r"this is the label of Bob\. Only they can remove it"):
            store.remove_label("Cold soup.", person=person)
    assert state(store) == before
    store.remove_label("Cold soup.", person="Bob")
    assert store.content().examples == []


def test_undo_of_a_label_does_not_say_of_which_sentence(store: ProjectStore) -> None:
    food, service = store.add_aspect("food"), store.add_aspect("service")
    store.label_sentence("Cold\n soup.", [service, food])
    assert store.undo() == "label “Cold soup.”: food, service"
    store.label_sentence("so " * 100, [])
    assert store.content().undo == f"label “{'so ' * 19}so…”: none"
    store.remove_label("so " * 100)
    assert store.content().undo == f"remove the label of “{'so ' * 19}so…”"
    store.label_sentence("x" * 60, [])
    assert store.content().undo == f"label “{'x' * 60}”: none"


def test_emptying_an_empty_project_keeps_its_history(store: ProjectStore) -> None:
    store.add_aspect("food", ["Cold soup."])
    wanted = state(store)
    for _ in range(MAX_LOADS + 1):
        store.clear()
    store.undo()
    assert state(store) == wanted
    store.clear()
    store.set_threshold(0.3)  # all that there is
    store.clear()
    assert store.content().threshold is None


def test_undo_is_refused_if_someone_else_has_changed_the_project(store: ProjectStore) -> None:
    store.add_aspect("food")
    seen = store.content().revision
    store.add_aspect("service")
    with pytest.raises(ConflictError, match="has been changed since it was shown"):
        store.undo(seen)
    assert store.undo(store.content().revision) == "add aspect service"
    with pytest.raises(ConflictError, match="has been changed"):
        store.redo(seen)


def test_a_name_with_more_blanks_is_the_same_name(store: ProjectStore) -> None:
    key = store.add_aspect("room size")
    store.rename_aspect(key, " room  size ")
    assert store.content().undo == "add aspect room size"


def test_names_that_differ_only_in_case_competed_with_each_other(store: ProjectStore) -> None:
    food = store.add_aspect("Food", ["Tasty soup."])
    message = "there is an aspect 'Food' already, which differs from 'food' only in case. Add examples to it, or choose"
    with pytest.raises(ConflictError, match=message):
        store.add_aspect("food")
    for labels in ([("Cold pasta.", ["food"])], [("Rude.", ["price"]), ("Slow.", ["Price"])]):
        with pytest.raises(ConflictError, match=r"the file has .* which differs only in case. Write both the same way"):
            store.import_examples(labels, "labels.csv")
    store.add_aspects(["food", "service", "Service", "SERVICE"])  # those that exist stay as they are
    assert [aspect.name for aspect in store.content().aspects] == ["Food", "service"]
    with pytest.raises(ConflictError, match="there is an aspect 'service' already, which differs from 'Service'"):
        store.rename_aspect(food, "Service")
    store.rename_aspect(food, "food")
    assert [aspect.name for aspect in store.content().aspects] == ["food", "service"]


def test_limits_name_the_numbers(tmp_path: Path) -> None:
    store = ProjectStore(tmp_path / "p.sqlite", Limits(aspects=1, examples=1, sentences=1, characters=10, name=5))
    with pytest.raises(AwattError, match="at most 5"):
        store.add_aspect("too long a name")
    store.add_aspect("food", ["Soup."])
    with pytest.raises(AwattError, match="2 aspects, but at most 1"):
        store.add_aspect("more")
    with pytest.raises(AwattError, match="2 examples"):
        store.label_sentence("Pasta.", [])
    with pytest.raises(AwattError, match="11 characters"):
        store.label_sentence("x" * 11, [])
    with pytest.raises(AwattError, match="2 sentences"):
        store.load_reviews([({}, ["a", "b"])])
    assert store.sentences() == []


def test_two_processes_see_each_other(tmp_path: Path) -> None:
    one, two = ProjectStore(tmp_path / "p.sqlite"), ProjectStore(tmp_path / "p.sqlite")
    for number in range(20):
        (one if number % 2 else two).add_aspect(f"aspect {number}", [f"Sentence {number}."])
    assert one.content() == two.content()
    assert len(one.content().aspects) == 20
    two.undo()
    assert len(one.content().aspects) == 19


def test_processes_that_start_together_find_the_file_locked(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from awatt.server.store import ProjectStore\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for number in range(20):\n"
        "    ProjectStore(Path(sys.argv[1]) / f'{number}.sqlite').add_aspect(sys.argv[2])\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("food", "drinks", "price")
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        process.communicate()
    assert [process.returncode for process in started] == [0, 0, 0]
    assert {aspect.name for aspect in ProjectStore(tmp_path / "0.sqlite").content().aspects} == {
        "food",
        "drinks",
        "price",
    }


def test_confirmed_changes_survive_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "p.sqlite"
    code = (
        "import sys, os; from pathlib import Path; from awatt.server.store import ProjectStore\n"
        "store = ProjectStore(Path(sys.argv[1]))\n"
        "for number in range(10**6):\n"
        "    store.add_aspect(f'aspect {number}') if number < 50 else store.label_sentence(f'Sentence {number}.', [])\n"
        "    os.write(1, b'.')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        done = len(process.stdout.read(70))
        process.send_signal(signal.SIGKILL)
        done += len(process.stdout.read())
    store = ProjectStore(path)
    content = store.content()
    assert 0 <= len(content.aspects) + len(content.examples) - done <= 1
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(AwattError, match="cannot be opened"):
        ProjectStore(tmp_path / "text.sqlite")
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    with pytest.raises(AwattError, match="another program"):
        ProjectStore(tmp_path / "other.sqlite")
    newer = ProjectStore(tmp_path / "newer.sqlite")
    newer.close()
    sqlite3.connect(tmp_path / "newer.sqlite").execute("PRAGMA user_version = 99")
    with pytest.raises(AwattError, match="newer awatt"):
        ProjectStore(tmp_path / "newer.sqlite")
    with pytest.raises(AwattError, match=r"cannot be opened as a project \(Not a directory\)"):
        ProjectStore(tmp_path / "text.sqlite" / "p.sqlite")
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(AwattError, match="cannot be opened"):
            ProjectStore(tmp_path / "locked" / "p.sqlite")


def test_a_zero_byte_in_a_text_does_not_cut_it_short_when_undone(store: ProjectStore) -> None:
    store.add_aspect("food", ["Soup\0of the day."])
    store.remove_example(store.content().examples[0].id)
    store.undo()
    assert store.content().examples[0].text == "Soup of the day."
