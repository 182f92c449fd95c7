"""The API: its responses, and its errors for bad input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import threading
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from awatt import AspectDetector
from awatt.server.export import escape_formulas
from awatt.server.limits import Limits
from awatt.server.projection import project

from .conftest import HOST, SMALL, make_client

RAW = {"content-type": "application/octet-stream"}
EVIL = "<script>alert(1)</script> The soup was cold."


def load(client: Any, content: str | bytes, **query: str) -> Any:
    return client.post("/v1/project/reviews", params=query, content=content, headers=RAW)


def test_detect_gives_what_the_detector_gives(sample: Any) -> None:
    aspects = sample.get("/v1/aspects").json()["aspects"]
    reviews = sample.get("/v1/project/sentences").json()["texts"]
    direct = AspectDetector.from_examples({aspect["name"]: aspect["examples"] for aspect in aspects}, reviews)
    texts = ["The soup was cold 😀 and the waiter rude.", "We left.", ""]
    found = sample.post("/v1/detect", json={"texts": texts}).json()["detections"]
    assert found == [asdict(each) for each in direct.detect_many(texts)]
    everything = sample.post("/v1/detect", json={"texts": texts[:1], "threshold": 0, "words": False}).json()
    assert len(everything["detections"][0]["aspects"]) == len(aspects)
    one = sample.post("/v1/detect", json={"texts": texts[:1], "threshold": {"food": 1}}).json()["detections"][0]
    assert "food" not in one["aspects"]


def test_names_alone_are_aspects_that_are_found(client: Any) -> None:
    load(client, "The battery died.\nA bright screen.\nWe left.", format="txt")
    made = client.post("/v1/aspects/names", json={"names": ["battery", " screen ", "battery", "!!!", ""]}).json()
    keys = {each["name"]: each["id"] for each in made["aspects"]}
    assert list(keys) == ["battery", "screen", "!!!"]
    assert (made["by_name"], made["unlearned"]) == ([keys["battery"], keys["screen"]], [keys["!!!"]])
    found = client.post("/v1/detect", json={"texts": ["The battery died."]}).json()["detections"][0]
    assert found["aspects"] == ["battery"]
    made = client.post(f"/v1/aspects/{keys['battery']}/examples", json={"texts": ["It charges slowly."]}).json()
    assert made["by_name"] == [keys["screen"]]  # an example was given, so it is no guess any more
    again = client.post("/v1/aspects/names", json={"names": ["battery", "price"]}).json()
    assert [each["name"] for each in again["aspects"]] == ["battery", "screen", "!!!", "price"]
    for _ in range(3):
        undone = client.post("/v1/project/undo").json()
    assert undone["aspects"] == []  # the names were one action
    assert client.post("/v1/aspects/names", json={"names": [" "]}).status_code == 422


def test_the_quality_is_measured_on_a_random_sample_that_was_not_learned(client: Any) -> None:
    foods = [f"The soup number {number} was tasty." for number in range(15)]
    load(client, "\n".join([*foods, *(f"We left at {number}." for number in range(15))]), format="txt", split="false")
    assert client.get("/v1/project/quality").json() == {**client.get("/v1/project/quality").json(), "quality": None}
    key = client.post("/v1/aspects", json={"name": "food", "examples": ["Tasty soup."]}).json()["aspects"][0]["id"]
    texts = dict(zip(*(client.get("/v1/project/sentences").json()[name] for name in ("ids", "texts")), strict=True))
    sample = client.get("/v1/project/quality").json()
    assert (sample["labelled"], len(sample["next"]), sample["quality"]) == (0, 20, None)
    first, second, *rest = sample["next"]
    client.put(f"/v1/project/sentences/{second}", json={"aspects": []})  # skipped one: not yet a random sample
    assert client.get("/v1/project/quality").json()["labelled"] == 0
    for each in (first, second, *rest[:10]):
        client.put(f"/v1/project/sentences/{each}", json={"aspects": [key] if "soup" in texts[each] else []})
    measured = client.get("/v1/project/quality").json()
    assert (measured["labelled"], measured["next"]) == (12, rest[10:])
    food = measured["quality"]["aspects"][0]
    assert food["mentioned"] == sum("soup" in texts[each] for each in (first, second, *rest[:10]))
    assert food["recall"]["low"] < food["recall"]["value"] == 1.0
    # A wrong label shows as an error, although the project's detector has learned it.
    wrong = next(each for each in (first, second, *rest[:10]) if "soup" in texts[each])
    client.put(f"/v1/project/sentences/{wrong}", json={"aspects": []})
    overall = client.get("/v1/project/quality").json()["quality"]["overall"]
    assert overall["found"] == overall["right"] + 1 == food["mentioned"]


def test_with_everything_labelled_the_measured_quality_was_that_of_the_names_alone(client: Any) -> None:
    texts = [f"{thing} number {number}." for thing in ("The blorf was glim", "We left at") for number in range(15)]
    load(client, "\n".join(texts), format="txt", split="false")
    key = client.post("/v1/aspects", json={"name": "price", "examples": []}).json()["aspects"][0]["id"]
    ids, read = (client.get("/v1/project/sentences").json()[name] for name in ("ids", "texts"))
    labels = [{"id": each, "aspects": [key] if "blorf" in text else []} for each, text in zip(ids, read, strict=True)]
    client.post("/v1/project/labels", json={"labels": labels})
    measured = client.get("/v1/project/quality").json()
    assert (measured["labelled"], measured["quality"]["overall"]["right"]) == (30, 15)
    points = client.get("/v1/project/quality/course").json()["points"]
    assert [point["n_examples"] for point in points] == [0, 30]
    assert points[-1]["quality"] == measured["quality"]


def test_an_example_in_capitals_taught_what_was_measured_in_the_sample(client: Any) -> None:
    load(client, "\n".join(f"We met {name} there." for name in ("Ann", "Bob", "Cem")), format="txt", split="false")
    key = client.post("/v1/aspects", json={"name": "food", "examples": ["Tasty soup."]}).json()["aspects"][0]["id"]
    ids = client.get("/v1/project/sentences").json()["ids"]
    client.post("/v1/project/labels", json={"labels": [{"id": each, "aspects": []} for each in ids]})
    client.post(f"/v1/aspects/{key}/examples", json={"texts": ["WE MET  BOB THERE."]})
    assert client.get("/v1/project/quality").json()["quality"]["overall"]["found"] == 0


def test_a_broken_character_was_counted_from_0_by_the_api_alone(client: Any) -> None:
    sent = client.post("/v1/detect", content=b'{"texts": ["abc\\ud83d"]}', headers={"content-type": "application/json"})
    assert "unpaired surrogate at character 4" in sent.json()["error"]


def test_aspects_are_compared_by_a_column_of_the_reviews(client: Any) -> None:
    rows = [
        f'{1 + number % 2},{number},"{"The soup was cold. Bye." if number % 2 else "We left."}"' for number in range(40)
    ]
    load(client, "\n".join(["stars,id,text", *rows]), format="csv")
    assert client.get("/v1/project/by").json() == {"columns": ["stars"], "comparison": None}
    client.post("/v1/aspects", json={"name": "food", "examples": ["The soup was cold.", "Tasty soup."]})
    made = client.get("/v1/project/by", params={"column": "stars"}).json()["comparison"]
    assert (made["groups"], made["counts"], made["aspects"][0]["name"]) == (["1", "2"], [20, 20], "food")
    assert [share["value"] for share in made["aspects"][0]["shares"]] == [0.0, 1.0]  # of the reviews
    for column, words in (
        ("id", "the column 'id' has a different value in every row, so it cannot be compared."),
        ("nope", "the reviews have no column 'nope' with a value. The columns are: 'stars', 'id'."),
    ):
        refused = client.get("/v1/project/by", params={"column": column})
        assert (refused.status_code, refused.json()["error"]) == (422, words)
    within = client.get("/v1/project/by", params={"column": "stars", "where": ["id=1", "id=2"]}).json()["comparison"]
    assert within["counts"] == [1, 1]  # reviews with one of these values
    assert client.get("/v1/project/by", params={"where": ["city=Bonn"]}).status_code == 422
    for given, counts in (
        ({"contains": ["id=3"]}, [5, 8]),  # 3, 13, 23 and 30 to 39
        ({"contains": ["id=3", "id=1"]}, [0, 2]),  # 13 and 31: both must match
        ({"contains": ["id=3"], "where": ["id=1", "id=30", "id=31", "stars=1"]}, [1, 1]),  # as on the page
        ({"text": " COLD "}, [0, 20]),
        ({"area": "-2 -2 2 -2 2 2 -2 2"}, [20, 20]),  # the whole map
        ({"area": "5 5 6 5 6 6", "text": "cold"}, [0, 0]),
    ):
        within = client.get("/v1/project/by", params={"column": "stars", **given}).json()["comparison"]
        assert within["counts"] == counts, given
    for area in ("1 2 3 4", "a b c d e f", "0 0 1 nan 1 1"):
        assert client.get("/v1/project/by", params={"area": area}).status_code == 422


def test_an_area_is_ignored_when_other_reviews_are_loaded_meanwhile(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "stars,text\n" + "".join(f"{1 + number % 2},We left at {number}.\n" for number in range(20))
    load(client, table, format="csv")
    client.post("/v1/aspects/names", json={"names": ["food"]})
    service = client.guard.app.state.service
    sentence_map, calls = service.workbench.sentence_map, []

    def load_meanwhile() -> Any:
        calls.append(1)
        if len(calls) == 1:  # as another process does
            service.store.load_reviews([({"stars": stars}, ["The soup was cold."]) for stars in (1, 1, 2)])
        return sentence_map()

    monkeypatch.setattr(service.workbench, "sentence_map", load_meanwhile)
    everything, nothing = "-2 -2 2 -2 2 2 -2 2", "5 5 6 5 6 6"
    found = client.get("/v1/project/by", params={"area": everything}).json()["comparison"]
    assert (len(calls), found["counts"]) == (2, [2, 1])  # of the new reviews
    assert client.get("/v1/project/by", params={"area": nothing}).json()["comparison"]["counts"] == [0, 0]


@pytest.mark.parametrize("kind", ["results.csv", "results.jsonl"])
def test_a_column_is_lost_when_its_new_name_exists(client: Any, kind: str) -> None:
    load(client, "input_review,review,text,scores\na,b,We left.,c\n", format="csv")
    client.post("/v1/aspects/names", json={"names": ["food"]})
    text = client.get(f"/v1/project/export/{kind}").text
    row = json.loads(text) if kind.endswith("jsonl") else next(csv.DictReader(io.StringIO(text)))
    given = {"input_review": "a", "input_input_review": "b", "scores" if kind.endswith("csv") else "input_scores": "c"}
    assert {name: row[name] for name in given} == given
    assert (str(row["review"]), row["text"]) == ("1", "We left.")


@pytest.mark.parametrize("start", ["\n", "\r\n\r\n", "\ufeff\n"])
def test_a_csv_that_begins_with_a_blank_line_has_no_rows(client: Any, start: str) -> None:
    content = f"{start}stars,text\n5,We left.\n".encode()
    found = client.post("/v1/project/columns?format=csv", content=content, headers=RAW)
    assert found.json() == {"columns": ["stars", "text"], "rows": [{"stars": "5", "text": "We left."}]}
    assert load(client, content, format="csv").json()["reviews"] == 1


def test_the_group_of_each_review_is_known_for_every_column(client: Any) -> None:
    load(client, "stars,day,text\n5,2024-01-03,Good.\n1,2024-03-04,Bad.\n5,2024-01-09,Fine.\n", format="csv")
    found = client.get("/v1/project/values", params={"column": "day"}).json()
    assert found["columns"] == [{"name": "stars", "kind": "groups"}, {"name": "day", "kind": "time"}]
    assert found["values"]["groups"] == ["2024-01", "2024-02", "2024-03"]  # without a gap
    assert found["values"]["places"] == [0, 2, 0]
    assert client.get("/v1/project/values", params={"column": "city"}).status_code == 422


def test_reviews_in_another_language_are_recognised_when_they_are_loaded(client: Any) -> None:
    german = "\n".join(f"Das Essen war sehr gut, aber Kellner {name} war langsam." for name in "abcdefghijkl")
    assert load(client, german, format="txt").json()["english"] is False
    assert load(client, "The soup was cold.", format="txt").json()["english"] is True


def test_an_aspect_after_256_tokens_is_found_on_the_page_as_by_the_command(client: Any) -> None:
    texts = ["hello", f"{'.' * 300} and the soup was cold", "a rude waiter"]
    for name, example in (("food", "cold soup"), ("staff", "a rude man")):
        client.post("/v1/aspects", json={"name": name, "examples": [example]})
    load(client, "\n".join(texts), format="txt", split="false")
    shown = np.frombuffer(client.get("/v1/project/scores").content, "<f4").reshape(len(texts), 2)
    found = client.post("/v1/detect", json={"texts": texts}).json()["detections"]
    assert found[1]["aspects"] == ["food"]
    assert shown == pytest.approx(np.array([list(each["scores"].values()) for each in found]), abs=1e-4)
    assert len(client.get("/v1/project/map").content) == len(texts) * 2 * 4


def test_aspects_are_added_changed_and_removed(client: Any) -> None:
    made = client.post("/v1/aspects", json={"name": "food", "examples": ["Tasty soup.", "Cold pasta."]}).json()
    key = made["aspects"][0]["id"]
    client.post("/v1/aspects", json={"name": "service", "examples": ["A rude waiter."]})
    client.patch(f"/v1/aspects/{key}", json={"name": "meals", "threshold": 0.25})
    client.post(f"/v1/aspects/{key}/examples", json={"texts": ["Fresh bread."]})
    listed = client.get("/v1/aspects").json()["aspects"]
    assert listed[0] == {
        "id": key,
        "name": "meals",
        "threshold": 0.25,
        "examples": ["Tasty soup.", "Cold pasta.", "Fresh bread."],
    }
    example = client.get("/v1/project").json()["examples"][0]["id"]
    assert client.put(f"/v1/examples/{example}", json={"aspects": []}).json()["examples"][0]["aspects"] == []
    assert len(client.delete(f"/v1/examples/{example}").json()["examples"]) == 3
    assert [aspect["name"] for aspect in client.delete(f"/v1/aspects/{key}").json()["aspects"]] == ["service"]
    assert client.post("/v1/project/undo").json()["redo"] == "remove aspect meals"
    assert len(client.get("/v1/aspects").json()["aspects"]) == 2
    client.post("/v1/project/redo")
    assert client.delete("/v1/project").json()["aspects"] == []


def test_report_and_suggest(sample: Any) -> None:
    report = sample.get("/v1/report").json()
    assert report["n_examples"] == 30
    assert 0 <= report["f1"] <= 1
    ids = sample.get("/v1/project/sentences").json()
    for each in sample.post("/v1/suggest", json={"k": 3}).json()["suggestions"]:
        assert ids["texts"][ids["ids"].index(each["id"])] == each["text"]
    given = sample.post("/v1/suggest", json={"texts": ["The soup is cold.", "Nice view."], "k": 1}).json()[
        "suggestions"
    ]
    assert len(given) == 1
    assert given[0]["id"] is None


def test_a_correction_becomes_an_example_and_is_detected(sample: Any) -> None:
    project_before = sample.get("/v1/project").json()
    before = np.frombuffer(sample.get("/v1/project/scores").content, "<f4")
    food = project_before["aspects"][0]["id"]
    key = sample.get("/v1/project/sentences").json()["ids"][0]
    after = sample.put(f"/v1/project/sentences/{key}", json={"aspects": [food]}).json()
    assert after["learned"] > project_before["learned"]
    assert after["examples"][-1]["corrected"]
    response = sample.get("/v1/project/scores")
    assert response.headers["x-awatt-learned"] == str(after["learned"])
    scores = np.frombuffer(response.content, "<f4")
    assert scores.shape == before.shape
    assert (scores != before).any()
    row = json.loads(sample.get("/v1/project/export/results.jsonl").text.splitlines()[0])
    assert (row["aspects"], row["by_person"]) == ([project_before["aspects"][0]["name"]], True)
    sample.delete(f"/v1/project/sentences/{key}")
    assert (np.frombuffer(sample.get("/v1/project/scores").content, "<f4") == before).all()


def test_thresholds_change_the_export(sample: Any) -> None:
    def found() -> int:
        return sum(
            len(json.loads(row)["aspects"]) for row in sample.get("/v1/project/export/results.jsonl").text.splitlines()
        )

    counts = []
    for value in (0.0, None, 1.0):
        assert sample.patch("/v1/project/settings", json={"threshold": value}).json()["threshold"] == value
        counts.append(found())
    assert counts[0] > counts[1] > counts[2] == 0
    first = sample.get("/v1/project").json()["aspects"][0]["id"]
    sample.patch(f"/v1/aspects/{first}", json={"threshold": 0.0})
    assert found() == sample.get("/v1/project").json()["n_sentences"]


def test_words_count_as_browsers_do(client: Any) -> None:
    client.post("/v1/aspects", json={"name": "food", "examples": ["Cold soup.", "Tasty pasta."]})
    load(client, "😀😀 cold soup", format="txt")
    words = client.post("/v1/project/words", json={"ids": [1, 7]}).json()["words"]
    spans = words["1"]["food"]
    units = "😀😀 cold soup".encode("utf-16-le")
    assert {units[2 * start : 2 * end].decode("utf-16-le") for start, end, _ in spans} <= {"cold", "soup"}
    assert list(words) == ["1"]


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("csv", 'id,body\n1,"Cold soup. Rude waiter!"\n2,"=1+1"\n'),
        ("tsv", "id\tbody\n1\tCold soup. Rude waiter!\n2\t=1+1\n"),
        ("jsonl", '{"id": 1, "body": "Cold soup. Rude waiter!"}\n{"id": 2, "body": "=1+1"}\n'),
        ("txt", "Cold soup. Rude waiter!\n=1+1\n"),
    ],
)
def test_reviews_come_in_any_format_and_go_out_with_their_columns(client: Any, format: str, content: str) -> None:
    client.post("/v1/aspects", json={"name": "=food", "examples": ["Cold soup.", "Tasty pasta."]})
    columns = client.post("/v1/project/columns", params={"format": format}, content=content, headers=RAW).json()
    column = "text" if format == "txt" else "body"
    assert column in columns["columns"]
    assert any("Cold soup" in value for value in columns["rows"][0].values())
    assert load(client, content, format=format, column=column).json() == {
        "reviews": 2,
        "left_out": 0,
        "faults": [],
        "english": True,
    }
    assert client.get("/v1/project/sentences").json()["texts"] == ["Cold soup.", "Rude waiter!", "=1+1"]
    rows = list(csv.DictReader(io.StringIO(client.get("/v1/project/export/results.csv").text)))
    assert [row["text"] for row in rows] == ["Cold soup.", "Rude waiter!", "'=1+1"]  # no longer a formula
    assert rows[0]["aspects"] == "'=food"
    assert [row["review"] for row in rows] == ["1", "1", "2"]
    assert format == "txt" or [row["id"] for row in rows] == ["1", "1", "2"]
    load(client, content, format=format, column=column, split="false")
    assert client.get("/v1/project").json()["n_sentences"] == 2


def test_parquet_in_and_out(sample: Any) -> None:
    import pyarrow.parquet

    content = sample.get("/v1/project/export/results.parquet").content
    table = pyarrow.parquet.read_table(io.BytesIO(content))
    assert "score_food" in table.column_names
    columns = sample.post("/v1/project/columns?format=parquet", content=content, headers=RAW).json()["columns"]
    assert columns == table.column_names
    assert load(sample, content, format="parquet").json()["reviews"] == table.num_rows


def test_the_exported_detector_finds_the_same(sample: Any, tmp_path: Path) -> None:
    sample.patch("/v1/project/settings", json={"threshold": 0.35})
    content = sample.get("/v1/project/export/detector.zip").content
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    text = "The soup was cold and the waiter rude."
    there = AspectDetector.from_pretrained(tmp_path / "detector").detect(text)
    here = sample.post("/v1/detect", json={"texts": [text]}).json()["detections"][0]
    assert (there.aspects, there.scores) == (here["aspects"], here["scores"])
    examples = sample.get("/v1/project/export/examples.jsonl").text
    (tmp_path / "examples.jsonl").write_text(examples)
    assert AspectDetector.from_examples(tmp_path / "examples.jsonl").aspects == there_names(sample)


def there_names(client: Any) -> tuple[str, ...]:
    return tuple(aspect["name"] for aspect in client.get("/v1/aspects").json()["aspects"])


BAD = [
    ("POST", "/v1/aspects/names", {"names": []}, 422, "names: list should have at least 1 item, found []."),
    ("POST", "/v1/detect", {"texts": [5]}, 422, "found 5"),
    ("POST", "/v1/detect", {"texts": ["x"] * 21}, 422, "21 texts in one request, but at most 20"),
    ("POST", "/v1/detect", {"texts": ["x" * 501]}, 422, "501 characters"),
    ("POST", "/v1/detect", {"texts": ["x"], "threshold": 2}, 422, "threshold: must be a number from 0 to 1, or bal"),
    ("POST", "/v1/detect", {"texts": ["x"], "threshold": {"food": "high"}}, 422, "object with one each, found {'food'"),
    ("PATCH", "/v1/project/settings", {"threshold": "high"}, 422, "threshold: must be a number from 0 to 1, found 'hi"),
    ("PATCH", "/v1/project/settings", {"threshold": True}, 422, "threshold: must be a number from 0 to 1, found True"),
    ("POST", "/v1/detect", {"texts": ["x"], "threshold": True}, 422, "threshold: must be a number from 0 to 1, or bal"),
    ("PATCH", "/v1/aspects/1", {"threshold": -1}, 422, "threshold: must be a number from 0 to 1, found -1"),
    ("POST", "/v1/detect", {"texts": ["x"], "threshold": {"no such": 0.5}}, 422, "'no such'"),
    ("POST", "/v1/detect", {"text": ["x"]}, 422, "texts"),
    ("POST", "/v1/detect", "{", 400, "JSON"),
    ("POST", "/v1/detect", '{"texts": ["\\ud800"]}', 422, "texts"),
    ("POST", "/v1/aspects", {"name": " "}, 422, "has no name"),
    ("POST", "/v1/aspects", {"name": "food"}, 409, "already"),
    ("POST", "/v1/aspects", {"name": "x" * 101}, 422, "101 characters"),
    ("POST", "/v1/aspects", {"name": "new", "examples": ["a", " "]}, 422, "blank"),
    ("PATCH", "/v1/aspects/999", {"name": "new"}, 404, "999"),
    ("PATCH", "/v1/aspects/0", {"name": "new"}, 422, "key"),
    ("PATCH", "/v1/aspects/99999999999999999999", {"name": "new"}, 422, "key"),
    ("DELETE", "/v1/examples/999", None, 404, "999"),
    ("PUT", "/v1/project/sentences/1", {"aspects": [999]}, 404, "999"),
    ("PUT", "/v1/project/sentences/999", {"aspects": []}, 404, "999"),
    ("POST", "/v1/project/sample", {"domain": "../x"}, 422, "domain"),
    ("POST", "/v1/project/redo", None, 409, "nothing to redo"),
    ("GET", "/v1/project/export/x.csv", None, 404, "results.csv"),
    ("GET", "/v1/nothing", None, 404, "/v1/nothing"),
    ("PUT", "/v1/detect", None, 405, "PUT"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "words"), BAD)
def test_bad_input_is_one_line_of_json(sample: Any, method: str, path: str, body: Any, status: int, words: str) -> None:
    content = body if isinstance(body, str) or body is None else json.dumps(body)
    response = sample.request(method, path, content=content, headers={"content-type": "application/json"})
    assert response.status_code == status
    assert list(response.json()) == ["error", "code", "field", "line"]
    assert words in response.json()["error"]
    assert "\n" not in response.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"texts": ["a", "x" * 501]}, 422, "invalid", "texts.1"),
        ({"texts": ["a", 5]}, 422, "invalid", "texts.1"),
        ({"texts": ["x"] * 21}, 422, "invalid", "texts"),
        ({"texts": ["x"], "threshold": 2}, 422, "invalid", "threshold"),
        ({"texts": ["x"], "wrong": 2}, 422, "invalid", "wrong"),
        ([], 422, "invalid", None),
        ("{", 400, "malformed", None),
        ('{"texts": ["x"], "threshold": 1e', 400, "malformed", None),
    ],
)
def test_an_error_has_a_code_and_names_the_field(sample: Any, body: Any, status: int, code: str, field: str) -> None:
    content = body if isinstance(body, str) else json.dumps(body)
    response = sample.post("/v1/detect", content=content, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["code"], response.json()["field"]) == (status, code, field)


def test_an_error_in_a_file_has_its_place(client: Any) -> None:
    response = load(client, "text,text\n1,2\n", format="csv").json()
    assert (response["code"], response["field"], response["line"]) == ("invalid_file", "text", 1)
    assert response["error"].startswith("the file, line 1, column 'text': this column name occurs")


def test_openapi_names_its_security_schemes(client: Any) -> None:
    document = client.get("/openapi.json").json()
    schemes = document["components"]["securitySchemes"]
    assert schemes["token"]["scheme"] == "bearer"
    assert {(schemes[name]["in"], schemes[name]["name"]) for name in ("cookie", "key")} == {
        ("cookie", "awatt_8377"),
        ("header", "x-awatt-key"),
    }
    assert document["security"] == [{"token": []}, {"cookie": [], "key": []}]
    assert document["paths"]["/health/ready"]["get"]["security"] == []
    assert {"415", "429", "507"} <= set(document["paths"]["/v1/detect"]["post"]["responses"])


CELLS = {
    "=1+1": "'=1+1",
    "＝1+1": "'＝1+1",
    "＠SUM(A1)": "'＠SUM(A1)",
    "\n=1+1": "'\n'=1+1",
    "\nplain": "'\nplain",
    "  =1+1": "'  =1+1",
    "Good; =HYPERLINK(1)": "Good;' =HYPERLINK(1)",
    "Good;=1;+2;-3;@4": "Good;'=1;'+2;'-3;'@4",
    "Good\t=1": "Good\t'=1",
    "two\n-lines": "two\n'-lines",
    "Good; but loud - really": "Good; but loud - really",
    "plain = text": "plain = text",
    "": "",
}


def test_cells_that_a_spreadsheet_would_evaluate_are_guarded() -> None:
    for cell, wanted in CELLS.items():
        assert escape_formulas({"text": cell}) == {"text": wanted}
    assert escape_formulas({"＝name": ["=a", "b"], "number": -1.5}) == {"'＝name": "'=a|b", "number": -1.5}


def test_a_csv_has_a_mark_for_excel_on_request(sample: Any) -> None:
    plain = sample.get("/v1/project/export/results.csv").content
    assert sample.get("/v1/project/export/results.csv?bom=true").content == b"\xef\xbb\xbf" + plain
    assert not plain.startswith(b"\xef")


@pytest.mark.parametrize(
    ("format", "content", "words"),
    [
        ("exe", b"", "one of jsonl"),
        ("../../etc/passwd", b"", "one of jsonl"),
        ("csv", b"", "no rows"),
        ("csv", b"a,a\n1,2\n", "more than once"),
        ("parquet", b"PAR1", "Parquet"),
        ("jsonl", b"[1]\n", "JSON object"),
        ("csv.gz", b"not gzip", "gzip"),
    ],
)
def test_bad_files_are_named_without_our_paths(client: Any, format: str, content: bytes, words: str) -> None:
    response = client.post("/v1/project/columns", params={"format": format}, content=content, headers=RAW)
    assert response.status_code == 422
    assert words in response.json()["error"]
    assert "/tmp" not in response.json()["error"]


def test_rows_that_cannot_be_read_are_named(client: Any) -> None:
    response = load(client, b'{"text": "Good."}\n{"text": 5}\nnonsense\n', format="jsonl").json()
    assert (response["reviews"], response["left_out"]) == (1, 2)
    assert response["faults"][0].startswith("the file, line 2")
    assert "no such column" in load(client, "a,b\n1,2\n", format="csv").json()["error"]
    for content, format in (("a,b\n1,2\n", "csv"), ('{"a": "b"}\n', "jsonl")):
        error = load(client, content, format=format).json()["error"]
        assert error.endswith("Name the one that holds the text with column=NAME, or in the column list.")
    assert "no text" in load(client, "text,b\n,2\n", format="csv").json()["error"]
    assert "300 sentences" in load(client, "x\n" * 301, format="txt").json()["error"]
    long = "x" * 501
    response = load(client, f"Good.\n{long}\n", format="txt").json()
    assert (response["reviews"], response["left_out"]) == (1, 1)
    assert response["faults"][0].startswith("the text of line 2 has 501 characters")
    assert "no row of the file can be read" in load(client, long, format="txt").json()["error"]


def test_an_empty_project_responds(client: Any) -> None:
    assert client.get("/v1/project").json()["n_sentences"] == 0
    assert client.get("/v1/project/scores").content == b""
    assert client.get("/v1/project/map").content == b""
    assert client.get("/v1/project/export/results.csv").status_code == 200
    assert "Add an aspect" in client.post("/v1/detect", json={"texts": ["x"]}).json()["error"]
    assert "Add an aspect" in client.get("/v1/report").json()["error"]
    client.post("/v1/aspects", json={"name": "7"})
    load(client, EVIL, format="txt")
    assert (
        np.frombuffer(client.get("/v1/project/scores").content, "<f4").tolist()
        == [0.0] * client.get("/v1/project").json()["n_sentences"]
    )


def test_the_map_has_a_place_for_every_sentence(sample: Any) -> None:
    places = np.frombuffer(sample.get("/v1/project/map").content, "<f4").reshape(-1, 2)
    assert len(places) == sample.get("/v1/project").json()["n_sentences"]
    assert np.abs(places).max() <= 1
    assert places.std(0).min() > 0.1
    line = np.outer(np.arange(5.0), [3.0, 4.0])
    assert np.allclose(project(line)[:, 1], 0, atol=1e-5)
    assert (np.diff(project(line)[:, 0]) > 0).all()
    assert project(np.zeros((1, 4))).tolist() == [[0, 0]]


def test_a_full_queue_gives_503(tmp_path: Path) -> None:
    limits = Limits(waiting=2)
    with make_client(tmp_path, limits) as client:
        service = client.guard.app.state.service
        go, began = threading.Event(), threading.Event()

        def slow(texts: list[str], threshold: object, words: bool) -> list[Any]:
            began.set()
            go.wait(10)
            return []

        service.batcher._freeze = lambda: slow
        first = threading.Thread(target=client.post, args=("/v1/detect",), kwargs={"json": {"texts": ["a", "b"]}})
        first.start()
        assert began.wait(10)
        refused = client.post("/v1/detect", json={"texts": ["c"]})
        go.set()
        first.join()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "waiting" in refused.json()["error"]


@pytest.mark.parametrize(
    "body", [{"texts": []}, {"texts": ["Great pizza."]}, {"texts": ["Rude!", "ü"], "threshold": 0.1, "words": False}]
)
def test_the_short_way_of_a_detection_answers_as_the_application_does(sample: Any, body: dict[str, Any]) -> None:
    of_page = {"x-awatt-project": sample.get("/v1/project").json()["project"]}  # which goes through the application
    direct, through = (sample.post("/v1/detect", json=body, headers=headers) for headers in ({}, of_page))
    assert direct.json() == through.json()
    assert len(direct.json()["detections"]) == len(body["texts"])  # none for no text, as in Python
    assert dict(direct.headers) == dict(through.headers)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"texts": [1]}', b'{"texts": ["a"], "x": 1}'])
def test_the_application_says_what_is_wrong_with_a_detection(sample: Any, body: bytes) -> None:
    of_page = {"x-awatt-project": sample.get("/v1/project").json()["project"]}
    json_type = {"content-type": "application/json"}
    direct, through = (
        sample.post("/v1/detect", content=body, headers={**json_type, **headers}) for headers in ({}, of_page)
    )
    assert direct.status_code == through.status_code
    assert 400 <= direct.status_code < 500
    assert direct.json() == through.json()


def test_requests_are_joined_and_each_gets_its_own(sample: Any) -> None:
    service = sample.guard.app.state.service
    sizes: list[int] = []
    freeze = service.batcher._freeze

    def counted(texts: list[str], threshold: object, words: bool) -> Any:
        sizes.append(len(texts))
        return freeze()(texts, threshold, words)

    service.batcher._freeze = lambda: counted
    responses: dict[int, Any] = {}

    def ask(number: int) -> None:
        texts = [f"Sentence {number}.", "The soup was cold."][: 1 + number % 2]
        responses[number] = sample.post("/v1/detect", json={"texts": texts}).json()["detections"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(responses[number][0]["text"] == f"Sentence {number}." for number in range(16))
    assert all(len(responses[number]) == 1 + number % 2 for number in range(16))
    assert sum(sizes) == 24


def test_an_internal_error_is_json_and_its_log_contains_no_text(sample: Any, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> list[Any]:
        raise RuntimeError("secret review text")

    sample.guard.app.state.service.batcher._freeze = lambda: broken
    strict = TestClient(
        sample.guard, base_url=f"http://{HOST}", headers=sample.headers
    )  # like uvicorn, which logs exceptions
    response = strict.post("/v1/detect", json={"texts": ["secret review text"]})
    assert response.status_code == 500
    assert "RuntimeError" in caplog.text
    assert "secret" not in response.text + caplog.text


def test_openapi_has_examples(client: Any) -> None:
    schema = client.get("/openapi.json").json()
    assert {"/v1/detect", "/v1/aspects", "/v1/report", "/v1/suggest", "/health/live", "/health/ready"} <= set(
        schema["paths"]
    )
    assert schema["components"]["schemas"]["DetectBody"]["properties"]["texts"]["examples"]
    assert SMALL.texts == 20


def test_a_page_of_another_project_changes_nothing(sample: Any) -> None:
    here = sample.get("/v1/project").json()
    assert sample.get("/v1/project/version").json()["project"] == here["project"]
    other = {"x-awatt-project": "0" * 16}
    for method, path, body in (
        ("PUT", "/v1/project/sentences/1", {"aspects": []}),
        ("POST", "/v1/aspects", {"name": "parking"}),
        ("POST", "/v1/project/undo", None),
    ):
        response = sample.request(method, path, json=body, headers=other)
        assert (response.status_code, "another project" in response.json()["error"]) == (409, True)
    assert sample.get("/v1/project").json() == here
    mine = {"x-awatt-project": here["project"]}
    assert sample.put("/v1/project/sentences/1", json={"aspects": []}, headers=mine).status_code == 200


def test_another_users_label_is_not_removed(sample: Any) -> None:
    label = {"aspects": [1], "seen": None}
    assert sample.put("/v1/project/sentences/1", json=label).status_code == 200
    assert sample.put("/v1/project/sentences/1", json={"aspects": [2]}).status_code == 200
    response = sample.put("/v1/project/sentences/1", json={"aspects": None, "seen": [1]})
    assert (response.status_code, "Look again" in response.json()["error"]) == (409, True)
    assert sample.get("/v1/project").json()["examples"][-1]["aspects"] == [2]
    assert len(sample.put("/v1/project/sentences/1", json={"aspects": None, "seen": [2]}).json()["examples"]) == 30


@pytest.mark.parametrize("body", [b"\xff", b"[" * 9000, b'{"texts": ["a"], "k": ' + b"9" * 5000 + b"}"])
@pytest.mark.parametrize(("method", "path"), [("post", "suggest"), ("post", "project/undo"), ("get", "project")])
def test_a_malformed_body_gives_a_json_error_even_if_none_is_read(
    client: Any, body: bytes, method: str, path: str
) -> None:
    response = client.request(method, f"/v1/{path}", content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (400, "malformed")


@pytest.mark.parametrize("line", [rb'{"te\ud800xt": 1}', b"[" * 20_000, b"5", b'["text"]', b""])
def test_the_first_line_of_a_file_that_is_no_object(client: Any, line: bytes) -> None:
    response = client.post("/v1/project/columns?format=jsonl", content=line + b"\n", headers=RAW)
    assert (response.status_code, "not a JSON object" in response.json()["error"]) == (422, True)


def test_zipped_parquet_has_columns(client: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    table = io.BytesIO()
    write_table(pyarrow.table({"review": ["Good soup."], "stars": [5]}), table)
    content = gzip.compress(table.getvalue())
    response = client.post("/v1/project/columns?format=parquet.gz", content=content, headers=RAW).json()
    assert response == {"columns": ["review", "stars"], "rows": [{"review": "Good soup.", "stars": "5"}]}
    assert load(client, content, format="parquet.gz", column="review").json()["reviews"] == 1


def test_any_column_can_be_exported(sample: Any) -> None:
    rows = [{"text": "Good soup.", "tags": [1, 2], "more": ["=a", None], "names": ["a", "b"], "deep": {"x": [1]}}]
    load(sample, "".join(json.dumps(row) + "\n" for row in rows), format="jsonl")
    (row,) = csv.DictReader(io.StringIO(sample.get("/v1/project/export/results.csv").text))
    assert json.loads(row["tags"]) == [1, 2]
    assert json.loads(row["more"]) == ["=a", None]
    assert json.loads(row["deep"]) == {"x": [1]}
    assert row["names"] == "a|b"
    detected = sample.post("/v1/detect", json={"texts": ["Good soup."]}).json()["detections"][0]["scores"]
    assert {name: float(row[f"score_{name}"]) for name in detected} == detected  # as many digits, too
    load(sample, json.dumps({"text": "Good soup.", "number": 2**63}) + "\n", format="jsonl")
    response = sample.get("/v1/project/export/results.parquet")
    assert response.status_code == 422
    assert response.json()["error"].startswith("results.parquet: the values of column 'number'")


def test_a_project_whose_file_is_gone_refuses_changes(client: Any, tmp_path: Path) -> None:
    assert client.post("/v1/aspects", json={"name": "food"}).status_code == 200
    (tmp_path / "project.sqlite").rename(tmp_path / "elsewhere.sqlite")
    responses = [client.post("/v1/aspects", json={"name": "drinks"}), client.get("/health/ready")]
    (tmp_path / "project.sqlite").write_bytes(b"")
    responses.append(client.post("/v1/aspects", json={"name": "drinks"}))
    assert all("moved, removed or replaced" in response.json()["error"] for response in responses)
    assert {response.status_code for response in responses} == {503}
