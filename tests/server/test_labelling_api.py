"""The API of labelling: suggested aspects, imports, many labels, notes, whole reviews, people, progress."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from awatt.server.progress import CancelledError, Progress, Step, Work
from awatt.server.reading import read_reviews

from .browsing import make_xlsx
from .conftest import SMALL

RAW = {"content-type": "application/octet-stream"}
REVIEWS = """stars,city,text
5,Rome,"The waiter was kind. The wine was good."
1,Oslo,"The waiter was rude. The parking was full."
2,Oslo,"A waiter forgot us. We paid for the parking. The wine was warm."
3,Rome,"The parking was free."
"""


def load(client: Any, content: str = REVIEWS, query: str = "") -> Any:
    url = f"/v1/project/reviews?format=csv&column=text{query}"
    response = client.post(url, content=content.encode(), headers=RAW)
    assert response.status_code == 200, response.text
    return response.json()


def ids(client: Any) -> dict[str, int]:
    found = client.get("/v1/project/sentences").json()
    return dict(zip(found["texts"], found["ids"], strict=True))


def test_suggestions_are_made_accepted_and_dismissed(client: Any) -> None:
    load(client)
    made = client.get("/v1/project/suggested-aspects").json()["suggestions"]
    assert [(each["name"], each["count"]) for each in made] == [("waiter", 3), ("parking", 3), ("wine", 2)]
    known = {key: text for text, key in ids(client).items()}
    assert all("parking" in known[key] for key in made[1]["sentences"])
    project = client.post("/v1/project/suggested-aspects/dismiss", json={"groups": ["wine"]}).json()
    assert project["undo"] == "dismiss wine"
    body = {"name": "car park", "examples": ["The parking was full."], "groups": ["parking"]}
    project = client.post("/v1/project/suggested-aspects", json=body).json()
    assert [aspect["name"] for aspect in project["aspects"]] == ["car park"]
    left = client.get("/v1/project/suggested-aspects").json()["suggestions"]
    assert [each["name"] for each in left] == ["waiter"]
    client.post("/v1/project/undo")
    left = client.get("/v1/project/suggested-aspects").json()["suggestions"]
    assert [each["name"] for each in left] == ["waiter", "parking"]


def test_what_an_aspect_covers_is_not_suggested(client: Any) -> None:
    load(client)
    client.post("/v1/aspects", json={"name": "Waiters", "examples": []})
    body = {"name": "cars", "examples": ["The parking was full.", "The parking was free.", "We paid for the parking."]}
    client.post("/v1/aspects", json=body)
    names = [each["name"] for each in client.get("/v1/project/suggested-aspects").json()["suggestions"]]
    assert names == ["wine"]  # "waiter" by its name, "parking" because it is found in those sentences


def test_the_name_of_the_file_and_the_chosen_columns_are_kept(client: Any) -> None:
    load(client, query="&name=h%C3%B4tel.csv&keep=city")
    project = client.get("/v1/project").json()
    assert (project["file"], project["name"]) == ("hôtel.csv", "project")
    assert client.get("/v1/project/reviews/2").json()["fields"] == {"city": "Oslo"}
    load(client, query="&keep=")
    assert client.get("/v1/project/reviews/2").json()["fields"] == {}


def test_a_whole_review_has_its_sentences_and_columns(client: Any) -> None:
    load(client)
    review = client.get("/v1/project/reviews/2").json()
    assert review["texts"] == ["The waiter was rude.", "The parking was full."]
    assert review["ids"] == [ids(client)[text] for text in review["texts"]]
    assert review["fields"] == {"stars": "1", "city": "Oslo"}
    assert client.get("/v1/project/reviews/9").status_code == 404


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("csv", "text,aspects\nCold soup.,food\nFar away.,\nRude.,staff|food\n"),
        (
            "jsonl",
            '{"text": "Cold soup.", "aspects": ["food"]}\n{"text": "Far away.", "aspects": []}\n'
            '{"text": "Rude.", "aspects": ["staff", "food"]}\n',
        ),
        (
            "csv",
            "review;text;aspects;by_person\n1;Cold soup.;food;True\n2;No.;staff;False\n3;Far away.;;true\n"
            "4;Rude.;food|staff;true\n",
        ),
        ("json", '{"food": ["Cold soup.", "Rude."], "staff": ["Rude."], "null": ["Far away."]}'),
    ],
)
def test_labels_are_imported_as_exported_or_as_examples_take_them(client: Any, format: str, content: str) -> None:
    url = f"/v1/project/examples?format={format}&name=mine"
    response = client.post(url, content=content.encode(), headers=RAW)
    assert response.status_code == 200, response.text
    project = client.get("/v1/project").json()
    names = {aspect["id"]: aspect["name"] for aspect in project["aspects"]}
    labels = {each["text"]: {names[key] for key in each["aspects"]} for each in project["examples"]}
    assert labels.pop("Far away.", set()) == set()
    assert labels == {"Cold soup.": {"food"}, "Rude.": {"staff", "food"}}
    assert project["undo"] == "import mine"


def test_what_was_exported_is_imported_into_another_project(sample: Any) -> None:
    before = sample.get("/v1/project").json()
    exported = sample.get("/v1/project/export/examples.jsonl").content
    sample.delete("/v1/project")
    response = sample.post("/v1/project/examples?format=jsonl", content=exported, headers=RAW)
    assert response.json() == {"examples": len(before["examples"])}
    after = sample.get("/v1/project").json()
    assert [each["text"] for each in after["examples"]] == [each["text"] for each in before["examples"]]
    assert [each["name"] for each in after["aspects"]] == [each["name"] for each in before["aspects"]]


def test_exported_results_come_back_as_they_were(client: Any) -> None:
    load(client, 'text\n"- Good soup here."\n"Fine."\n')
    client.post("/v1/aspects/names", json={"names": ["-food", "food|drink"]})
    key = ids(client)["- Good soup here."]
    before = client.put(f"/v1/project/sentences/{key}", json={"aspects": [1, 2]}).json()
    exported = client.get("/v1/project/export/results.csv").content
    assert b",'- Good soup" in exported  # as a spreadsheet needs it
    client.delete("/v1/project")
    assert client.post("/v1/project/examples?format=csv", content=exported, headers=RAW).json() == {"examples": 1}
    after = client.get("/v1/project").json()
    assert [each["text"] for each in after["examples"]] == [each["text"] for each in before["examples"]]
    assert [each["name"] for each in after["aspects"]] == ["-food", "food|drink"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_quote_before_a_sign_is_lost_when_exported_results_are_imported(client: Any, kind: str) -> None:
    """Only a CSV is escaped for spreadsheets; the other exports have the texts as they are."""
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'awatt[parquet]'")
    load(client, 'text\n"Great soup;\'-)"\n')
    client.post("/v1/aspects/names", json={"names": ["'=food"]})
    (text,) = ids(client)
    client.put(f"/v1/project/sentences/{ids(client)[text]}", json={"aspects": [1]})
    exported = client.get(f"/v1/project/export/results.{kind}").content
    client.delete("/v1/project")
    assert client.post(f"/v1/project/examples?format={kind}", content=exported, headers=RAW).json() == {"examples": 1}
    after = client.get("/v1/project").json()
    assert ([each["text"] for each in after["examples"]], after["aspects"][0]["name"]) == ([text], "'=food")
    assert text == "Great soup;'-)"


def test_rows_with_the_same_text_are_one_sentence(client: Any) -> None:
    rows = '{"text": "Cold.", "aspects": ["food"]}\n{"text": "Cold.", "aspects": ["service"]}\n'
    response = client.post("/v1/project/examples?format=jsonl", content=rows.encode(), headers=RAW)
    assert response.json() == {"examples": 1}
    assert client.get("/v1/project").json()["examples"][0]["aspects"] == [1, 2]
    broken = client.post("/v1/project/examples?format=json", content=b'{"fo\\ud800od": ["bad"]}', headers=RAW)
    assert (broken.status_code, "unpaired surrogate" in broken.json()["error"]) == (422, True)


def test_an_imported_aspect_that_occurs_twice_loses_sentences(client: Any) -> None:
    content = b'{"food": ["Cold soup."], "staff": ["Rude."], "food": ["Great bread."]}'
    refused = client.post("/v1/project/examples?format=json", content=content, headers=RAW)
    assert (refused.status_code, "the key 'food' occurs more than once" in refused.json()["error"]) == (422, True)
    assert client.get("/v1/project").json()["revision"] == 0


def test_labels_of_others_stay_when_many_are_removed(client: Any) -> None:
    load(client)
    client.post("/v1/aspects/names", json={"names": ["staff"]})
    mine, theirs = ids(client)["The waiter was kind."], ids(client)["The waiter was rude."]
    for key, person in ((mine, "Ann"), (theirs, "Bob")):
        client.put(f"/v1/project/sentences/{key}", json={"aspects": [1], "person": person})
    body = {"labels": [{"id": mine, "aspects": None}, {"id": theirs, "aspects": None}], "person": "Ann"}
    project = client.post("/v1/project/labels", json=body).json()
    assert [each["text"] for each in project["examples"]] == ["The waiter was rude."]
    refused = client.put(f"/v1/project/sentences/{theirs}", json={"aspects": None, "person": "Ann"})
    assert (refused.status_code, "the label of Bob" in refused.json()["error"]) == (409, True)
    deleted = client.delete(f"/v1/project/sentences/{theirs}")
    assert (deleted.status_code, deleted.json()) == (409, refused.json())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text\nCold soup.\n", "no column 'aspects'"),
        ("aspects,text\n", "no labelled sentence"),
        ("text,aspects\n" + "".join(f"Soup {n}.,food\n" for n in range(61)), "at most 60"),
        ("text,aspects\n" + "".join(f"Soup {n}.,food{n}\n" for n in range(9)), "at most 8"),
        (f"text,aspects\n{'x' * 501},food\n", "at most 500"),
        ("text,aspects\nLate.,speed\nLate.,\n", "the example 'Late.' is off-topic in one place and mentions 'speed'"),
        ('{"text": "Cold.", "aspects": []}\n{"b": 1}\n', "Name the one that holds the text 'text'."),
    ],
)
def test_labels_that_cannot_be_imported_change_nothing(client: Any, content: str, message: str) -> None:
    format = "jsonl" if content.startswith("{") else "csv"
    response = client.post(f"/v1/project/examples?format={format}", content=content.encode(), headers=RAW)
    assert response.status_code == 422
    assert message in response.json()["error"]
    assert client.get("/v1/project").json()["revision"] == 0


def test_many_sentences_are_labelled_at_once(client: Any) -> None:
    load(client)
    client.post("/v1/aspects/names", json={"names": ["staff", "wine"]})
    known = ids(client)
    first, second = known["The waiter was kind."], known["The wine was warm."]
    body = {"labels": [{"id": first, "aspects": [1]}, {"id": second, "aspects": [2]}], "person": "Ann"}
    project = client.post("/v1/project/labels", json=body).json()
    assert [(each["aspects"], each["votes"]) for each in project["examples"]] == [
        ([1], {"Ann": [1]}),
        ([2], {"Ann": [2]}),
    ]
    assert project["undo"] == "label 2 sentences"
    body = {"labels": [{"id": first, "aspects": None}, {"id": second, "aspects": []}], "person": "Ann"}
    project = client.post("/v1/project/labels", json=body).json()
    assert [(each["text"], each["aspects"]) for each in project["examples"]] == [("The wine was warm.", [])]
    assert client.post("/v1/project/labels", json={"labels": [{"id": 999, "aspects": []}]}).status_code == 404


def test_many_labels_overwrite_those_that_others_gave_since(client: Any) -> None:
    load(client, REVIEWS + '4,Rome,"The wine was warm."\n')
    client.post("/v1/aspects/names", json={"names": ["staff", "wine"]})
    found = client.get("/v1/project/sentences").json()
    first, second, *_, third = found["ids"]
    same = found["ids"][found["texts"].index("The wine was warm.")]
    assert same != third
    client.put(f"/v1/project/sentences/{first}", json={"aspects": [1], "person": "Bob"})
    revision = client.put(f"/v1/project/sentences/{second}", json={"aspects": [2], "person": "Bob"}).json()["revision"]
    labels = [{"id": key, "aspects": [], "seen": None} for key in (first, second, third)]
    refused = client.post("/v1/project/labels", json={"labels": labels, "person": "Ann"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert f"the labels of 2 sentences have been changed since they were shown (ids {first}, {second})" in refused.text
    labels[0]["seen"], labels[1] = [1], {"id": second, "aspects": None, "seen": []}
    refused = client.post("/v1/project/labels", json={"labels": labels, "person": "Ann"})
    assert f"the label of a sentence has been changed since it was shown (id {second})" in refused.json()["error"]
    assert client.get("/v1/project").json()["revision"] == revision  # nothing has changed
    labels[1] = {"id": same, "aspects": [2], "seen": None}  # the text of the third: the last one counts
    saved = client.post("/v1/project/labels", json={"labels": labels, "person": "Ann"}).json()
    assert [each["aspects"] for each in saved["examples"]] == [[], [2], []]


def test_a_note_belongs_to_its_sentence(client: Any) -> None:
    load(client)
    key = ids(client)["The wine was warm."]
    project = client.put(f"/v1/project/notes/{key}", json={"note": "red or white?"}).json()
    assert project["notes"] == {"The wine was warm.": "red or white?"}
    assert client.put("/v1/project/notes/999", json={"note": "x"}).status_code == 404
    assert client.put(f"/v1/project/notes/{key}", json={"note": "x" * 2001}).status_code == 422


def test_two_people_are_compared_on_what_both_have_labelled(client: Any) -> None:
    load(client)
    client.post("/v1/aspects/names", json={"names": ["staff", "wine"]})
    said = {
        "The waiter was kind.": {"Ann": [1], "Ben": [1]},
        "The wine was good.": {"Ann": [2], "Ben": []},
        "The parking was full.": {"Ann": [], "Ben": []},
        "The wine was warm.": {"Ann": [2]},
    }
    known = ids(client)
    for text, votes in said.items():
        for person, aspects in votes.items():
            body = {"aspects": aspects, "person": person}
            assert client.put(f"/v1/project/sentences/{known[text]}", json=body).status_code == 200
    found = client.get("/v1/project/people").json()
    assert found["people"] == [{"name": "Ann", "labelled": 4}, {"name": "Ben", "labelled": 3}]
    (pair,) = found["agreements"]
    assert (pair["people"], pair["n_sentences"]) == (["Ann", "Ben"], 3)
    staff, wine = pair["aspects"]
    assert (staff["agreed"]["value"], staff["kappa"]) == (1, 1)
    assert (wine["agreed"]["value"], wine["kappa"]) == (pytest.approx(2 / 3), 0)  # no more than chance
    assert pair["overall"]["agreed"]["value"] == pytest.approx(5 / 6)
    examples = {each["id"]: each["text"] for each in client.get("/v1/project").json()["examples"]}
    assert [examples[key] for key in found["differing"]] == ["The wine was good."]


def test_reading_can_be_cancelled_and_changes_nothing(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/v1/project/progress").json() == {"doing": "", "done": 0, "total": 0}
    assert client.delete("/v1/project/progress").status_code == 200  # nothing is running: nothing happens
    progress = Progress()
    rows = b"text\n" + b"Good soup.\n" * 50
    seen: list[Step] = []
    reach = Work.reach

    def cancel_after_some(work: Work, done: int) -> None:
        seen.append(progress.step)
        if done == 20:
            canceller = threading.Thread(target=progress.cancel)  # as another request does
            canceller.start()
            canceller.join()
        reach(work, done)

    monkeypatch.setattr(Work, "reach", cancel_after_some)
    with pytest.raises(CancelledError):
        read_reviews(rows, "csv", "text", True, SMALL, progress=progress)
    assert seen[5].doing == "reading"
    assert progress.step == Step()
    progress.cancel()  # too late: the next work is not cancelled
    with progress.work("detecting", 10) as work:
        work.reach(5)
        assert progress.step == Step("detecting", 5, 10)


def test_detection_can_be_cancelled_and_goes_on_when_asked_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    load(client)
    client.post("/v1/aspects/names", json={"names": ["staff"]})
    progress = client.guard.app.state.service.workbench.progress
    reach = Work.reach

    def cancel(work: Work, done: int) -> None:
        progress.cancel()
        reach(work, done)

    with monkeypatch.context() as patched:
        patched.setattr(Work, "reach", cancel)
        response = client.get("/v1/project/scores")
    assert (response.status_code, response.json()["code"]) == (409, "cancelled")
    assert client.get("/v1/project/scores").status_code == 200


def test_an_excel_file_is_previewed_and_loaded(client: Any) -> None:
    content = make_xlsx([["body", "stars", "day"], ["Good soup & bread.", "5", "Monday"], ["Cold.", "1", "Friday"]])
    found = client.post("/v1/project/columns?format=xlsx", content=content, headers=RAW).json()
    assert found["columns"] == ["body", "stars", "day"]
    assert found["rows"][0] == {"body": "Good soup & bread.", "stars": "5", "day": "Monday"}
    url = "/v1/project/reviews?format=xlsx&column=body&keep=day"
    assert client.post(url, content=content, headers=RAW).json()["reviews"] == 2
    assert client.get("/v1/project/reviews/1").json()["fields"] == {"day": "Monday"}
    damaged = client.post(url, content=content[:300], headers=RAW)
    assert (damaged.status_code, damaged.json()["error"][:30]) == (422, "the file cannot be read as .xl")


def test_a_server_that_stops_does_not_finish_a_load() -> None:
    progress = Progress()
    progress.end()
    with pytest.raises(CancelledError), progress.work("detecting", 10) as work:
        work.reach(1)


def test_a_cancel_is_lost_when_other_work_begins_or_ends() -> None:
    progress = Progress()
    with progress.work("reading") as reading:
        with progress.work("detecting", 10) as detecting:  # as another tab asks for
            detecting.reach(3)
            assert progress.step == Step("detecting", 3, 10)
        assert progress.step == Step("reading")
        progress.cancel()
        with progress.work("detecting", 10) as later:
            later.reach(1)  # begun after the cancel
        with pytest.raises(CancelledError):
            reading.reach(1)
    assert progress.step == Step()


def test_a_load_that_was_saved_is_answered_with_busy(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If other requests take the last place as soon as the reviews are saved."""
    service = client.guard.app.state.service
    save = service.store.load_reviews

    def save_and_fill(*arguments: Any) -> None:
        save(*arguments)
        service._large._limit = 0

    monkeypatch.setattr(service.store, "load_reviews", save_and_fill)
    assert load(client) == {"reviews": 4, "left_out": 0, "faults": [], "english": True}
    assert client.get("/v1/project/scores").status_code == 503


def test_reviews_loaded_while_the_detector_is_fitted_keep_stale_scores(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from awatt.server import workbench as module

    load(client)
    client.post("/v1/aspects/names", json={"names": ["staff", "wine"]})
    store, workbench = client.guard.app.state.service.store, client.guard.app.state.service.workbench
    fit, score = module.fit_detector, workbench._score
    fits: list[Any] = []
    scored: list[tuple[int, int]] = []

    def load_meanwhile(*arguments: Any) -> Any:
        if not fits:  # as another process does
            store.load_reviews([({}, ["The wine was superb.", "The staff was slow."])])
        fits.append(fit(*arguments))
        return fits[-1]

    def score_and_note(cached: Any, reviews: Any) -> Any:
        scored.append((cached.reviews, reviews.version))
        return score(cached, reviews)

    monkeypatch.setattr(module, "fit_detector", load_meanwhile)
    monkeypatch.setattr(workbench, "_score", score_and_note)
    for _ in range(2):
        version, _, scores = workbench.scores()
        assert (version.reviews, len(scores)) == (store.version().reviews, 2)
    assert len(fits) == 2
    assert scored == [(version.reviews, version.reviews)]
