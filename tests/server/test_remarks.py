"""What people leave beside labels: who said what, notes, dismissed suggestions, the file's name; all can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from awatt.errors import AwattError
from awatt.server.limits import Limits
from awatt.server.people import compare_labels
from awatt.server.store import ProjectStore


@pytest.fixture
def store(tmp_path: Path) -> ProjectStore:
    made = ProjectStore(tmp_path / "p.sqlite")
    for name in ("food", "staff"):
        made.add_aspect(name)
    return made


def test_what_each_person_said_is_kept_and_the_label_is_what_was_said_last(store: ProjectStore) -> None:
    store.label_sentence("Good soup.", [1], person="Ann")
    store.label_sentence("Good soup.", [1, 2], person=" Ben  B ")
    example = store.content().examples[0]
    assert (example.aspects, example.votes) == ((1, 2), {"Ann": [1], "Ben B": [1, 2]})
    store.label_sentence("Good soup.", [2], person="Ann")
    assert store.content().examples[0].votes == {"Ben B": [1, 2], "Ann": [2]}
    store.undo()
    assert store.content().examples[0].votes == {"Ann": [1], "Ben B": [1, 2]}


def test_a_label_that_the_same_person_repeats_is_a_change(store: ProjectStore) -> None:
    store.load_reviews([({}, ["Good soup."])])
    ((key, *_),) = store.sentences()
    store.label_sentence("Good soup.", [1, 2], person="Ann")
    before = store.content()
    store.label_sentence("Good soup.", [2, 1], person="Ann")
    store.label_sentences([(key, [1, 2], ...)], person="Ann")
    assert store.content() == before
    store.label_sentence("Good soup.", [2], person="Ben")
    store.label_sentence("Good soup.", [1, 2], person="Ann")  # not the label since Ben gave another one
    assert store.content().examples[0].aspects == (1, 2)
    assert store.version().revision == before.revision + 2


def test_a_thousand_names_on_one_sentence(tmp_path: Path) -> None:
    """Each two of them were compared, which took a minute."""
    limits, path = Limits(people=2), tmp_path / "p.sqlite"
    store = ProjectStore(path, limits)
    for person in ("", "Ann", "Ann"):
        store.label_sentence("Good soup.", [], person=person)
    before = store.content()
    with pytest.raises(AwattError, match="2 people label this project already, but at most 2 can"):
        store.label_sentence("Good soup.", [], person="Ben")
    assert store.content() == before
    store.remove_label("Good soup.", person="Ann")
    store.label_sentence("Good soup.", [], person="Ben")
    store.close()


def test_a_file_with_labels_of_more_people_than_allowed_did_not_open(tmp_path: Path) -> None:
    """Before there was a limit, any number of people could label."""
    path, limits = tmp_path / "p.sqlite", Limits(people=2)
    store = ProjectStore(path)
    aspect = store.add_aspect("food")
    for person, count in {"Ann": 1, "Ben": 3, "Cem": 2}.items():
        for text in ("Good soup.", "Cold soup.", "Nice soup.")[:count]:
            store.label_sentence(text, [aspect], person=person)
    store.close()
    store = ProjectStore(path, limits)
    store.label_sentence("Good soup.", [], person="Ann")  # whoever has labelled may go on
    with pytest.raises(AwattError, match="3 people label this project already, but at most 2 can"):
        store.label_sentence("Good soup.", [], person="Dee")
    found = compare_labels(store.content(), limits.people)
    assert [each.name for each in found.people] == ["Ben", "Cem", "Ann"]
    assert [each.people for each in found.agreements] == [("Ben", "Cem")]
    store.close()


def test_a_file_with_more_labels_by_people_than_can_be_given_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "p.sqlite"
    store = ProjectStore(path, Limits(votes=2))
    for person in ("Ann", "Ben", "Ann"):
        store.label_sentence("Good soup.", [], person=person)
    with pytest.raises(AwattError, match="3 labels by people, but at most 2 are allowed"):
        store.label_sentence("Cold soup.", [], person="Ann")
    store.close()
    ProjectStore(path, Limits(votes=2)).close()
    with pytest.raises(AwattError, match="2 labels by people in the project, but at most 1 are allowed"):
        ProjectStore(path, Limits(votes=1))


def test_who_takes_back_a_label_leaves_that_of_others(store: ProjectStore) -> None:
    store.label_sentence("Good soup.", [1], person="Ann")
    store.label_sentence("Good soup.", [2], person="Ben")
    store.remove_label("Good soup.", person="Ben")
    assert [(each.aspects, each.votes) for each in store.content().examples] == [((1,), {"Ann": [1]})]
    store.remove_label("Good soup.", person="Ann")
    assert store.content().examples == []
    store.undo()
    store.undo()
    assert store.content().examples[0].votes == {"Ann": [1], "Ben": [2]}


def test_a_removed_aspect_is_no_longer_in_what_people_said(store: ProjectStore) -> None:
    store.label_sentence("Good soup.", [1, 2], person="Ann")
    store.remove_aspect(2)
    assert store.content().examples[0].votes == {"Ann": [1]}
    store.undo()
    assert store.content().examples[0].votes == {"Ann": [1, 2]}


def test_notes_are_written_changed_and_undone(store: ProjectStore) -> None:
    store.set_note("Good soup.", "ask Ann")
    store.set_note("Good soup.", " clear now ")
    revision = store.version().revision
    store.set_note("Good soup.", "clear now")  # changes nothing
    assert (store.content().notes, store.version().revision) == ({"Good soup.": "clear now"}, revision)
    store.undo()
    assert store.content().notes == {"Good soup.": "ask Ann"}
    store.set_note("Good soup.", "")
    assert store.content().notes == {}
    with pytest.raises(AwattError, match="at most 2,000"):
        store.set_note("Good soup.", "x" * 2001)


def test_too_many_notes_are_refused(tmp_path: Path) -> None:
    store = ProjectStore(tmp_path / "p.sqlite", Limits(notes=1))
    store.set_note("One.", "1")
    with pytest.raises(AwattError, match="2 notes, but at most 1"):
        store.set_note("Two.", "2")
    assert store.content().notes == {"One.": "1"}


def test_an_accepted_suggestion_is_undone_as_a_whole(store: ProjectStore) -> None:
    store.accept_suggestion("waiting", ["We waited.", "A long queue."], ["wait", "queue"])
    content = store.content()
    assert [aspect.name for aspect in content.aspects] == ["food", "staff", "waiting"]
    assert [example.text for example in content.examples] == ["We waited.", "A long queue."]
    assert store.dismissed() == {"wait", "queue"}
    store.undo()
    assert (len(store.content().aspects), store.content().examples, store.dismissed()) == (2, [], set())
    store.dismiss(["desk"])
    assert store.content().undo == "dismiss desk"


def test_imported_labels_add_the_aspects_that_are_missing_and_are_undone_together(store: ProjectStore) -> None:
    store.label_sentence("Good soup.", [2])
    assert store.import_examples([("Good soup.", ["food"]), ("Hm.", []), ("Far.", ["place", "food"])], "old.jsonl") == 3
    content = store.content()
    assert [aspect.name for aspect in content.aspects] == ["food", "staff", "place"]
    assert [(each.text, each.aspects) for each in content.examples] == [
        ("Good soup.", (1,)),
        ("Hm.", ()),
        ("Far.", (1, 3)),
    ]
    assert content.undo == "import old.jsonl"
    store.undo()
    assert [(each.text, each.aspects) for each in store.content().examples] == [("Good soup.", (2,))]


def test_the_name_of_the_file_is_undone_with_its_reviews(store: ProjectStore) -> None:
    assert store.content().file is None
    store.load_reviews([({}, ["One."])], "one.csv")
    store.load_reviews([({}, ["Two."])], "two.csv")
    store.load_reviews([({}, ["Three."])])
    assert store.content().file is None
    store.undo()
    assert store.content().file == "two.csv"
    store.undo()
    assert store.content().file == "one.csv"


def test_labels_of_many_sentences_are_undone_together(store: ProjectStore) -> None:
    store.load_reviews([({}, ["One.", "Two."])])
    (one, *_), (two, *_) = store.sentences()
    store.label_sentences([(one, [1], ...), (two, [1, 2], None)], person="Ann")
    assert [each.votes for each in store.content().examples] == [{"Ann": [1]}, {"Ann": [1, 2]}]
    assert store.content().undo == "label 2 sentences"
    store.undo()
    assert store.content().examples == []
