"""The API of the page: the project's reviews, scores, words, labels, history and files."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from awatt.detector.language import seems_english
from awatt.server.comparing import ByColumn, ColumnValues, column_values, compare_by_column
from awatt.server.errors import NotFoundError
from awatt.server.export import MEDIA_TYPES, export
from awatt.server.measuring import Course, MeasuredSample, measure_course, measure_sample
from awatt.server.reading import preview, read_reviews, read_sample
from awatt.server.requests import IdsBody, Key, LabelBody, RevisionBody, SampleBody, SettingsBody
from awatt.server.responses import (
    ERRORS,
    Columns,
    Counters,
    Loaded,
    Project,
    Sentences,
    Words,
    describe_file,
    describe_json,
    json_response,
)
from awatt.server.scope import Scope
from awatt.server.service import Service

Format = Annotated[
    str, Query(description="jsonl, csv, tsv, parquet or txt, optionally with .gz; json or xlsx", max_length=20)
]
Column = Annotated[str | None, Query(max_length=1000)]
BYTES = "application/octet-stream"
UPLOAD = {"requestBody": {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}}


def make_routes(service: Service) -> APIRouter:
    """The routes under ``/v1/project``."""
    router = APIRouter(
        prefix="/v1/project",
        tags=["project"],
        responses=ERRORS,
        default_response_class=Response,
        dependencies=[Depends(service.check_project)],
    )
    store, workbench = service.store, service.workbench

    @router.get("", responses=describe_json(Project))
    async def project() -> Response:
        """Get the aspects, examples, settings and counters."""
        return json_response(await service.run(service.project))

    @router.delete("", responses=describe_json(Project))
    async def clear() -> Response:
        """Empty the project. Can be undone."""
        return await service.change(store.clear)

    @router.post("/sample", responses=describe_json(Project))
    async def sample(body: SampleBody) -> Response:
        """Replace everything with a bundled sample. Can be undone."""
        name = f"{body.domain} sample"
        return await service.change(lambda: store.load_sample(*read_sample(body.domain), name))

    @router.post("/columns", openapi_extra=UPLOAD, responses=describe_json(Columns))
    async def columns(request: Request, format: Format) -> Response:
        """Get the columns and first rows of a file."""
        return json_response(Columns(*await service.compute(preview, await request.body(), format, service.limits)))

    @router.post("/reviews", openapi_extra=UPLOAD, responses=describe_json(Loaded))
    async def load(
        request: Request,
        format: Format,
        column: Annotated[str, Query(max_length=1000)] = "text",
        split: Annotated[bool, Query(description="Split each row into sentences.")] = True,
        keep: Annotated[list[str] | None, Query(description="Other columns to keep; all by default.")] = None,
        name: Annotated[str | None, Query(description="The name of the file, to be shown.", max_length=1000)] = None,
    ) -> Response:
        """Replace the reviews with those of a file; aspects and examples are kept. Can be undone."""
        body = await request.body()

        def read_and_load() -> Loaded:
            options = (column, split, service.limits, keep, workbench.progress)
            reviews, left_out, errors = read_reviews(body, format, *options)
            english = seems_english([text for _, texts in reviews for text in texts])
            store.load_reviews(reviews, name)  # last: an error means that nothing has changed
            return Loaded(len(reviews), left_out, errors, english)

        return json_response(await service.compute(read_and_load))

    @router.get("/sentences", responses=describe_json(Sentences))
    async def sentences() -> Response:
        """Get the id, review number and text of every sentence."""
        found = await service.compute(workbench.reviews)
        return json_response(Sentences(found.version, found.ids, found.reviews, found.texts))

    @router.get("/scores", responses=describe_file(BYTES))
    async def scores() -> Response:
        """Get the scores of every sentence and aspect, row by row, as 32-bit floats (little-endian).

        The header x-awatt-aspects names the columns, x-awatt-thresholds the detector's own threshold of each.
        """
        version, thresholds, found = await service.compute(workbench.scores_and_thresholds)
        headers = {"x-awatt-learned": str(version.learned), "x-awatt-reviews": str(version.reviews)}
        headers["x-awatt-aspects"] = ",".join(map(str, thresholds))
        headers["x-awatt-thresholds"] = ",".join(map(repr, thresholds.values()))
        return Response(found.astype("<f4").tobytes(), media_type=BYTES, headers=headers)

    @router.get("/quality", responses=describe_json(MeasuredSample))
    async def quality() -> Response:
        """Measure the quality on a random sample of the sentences, as far as it is labelled."""
        return json_response(await service.compute(measure_sample, workbench))

    @router.get("/quality/course", responses=describe_json(Course))
    async def course() -> Response:
        """Measure on the same sample how the quality changed as examples were added."""
        return json_response(await service.compute(measure_course, workbench))

    @router.get("/by", responses=describe_json(ByColumn))
    async def by_column(
        column: Column = None,
        where: Annotated[
            list[str],
            Query(
                description="Only reviews in this group: column=group; any, if a column occurs twice.", max_length=100
            ),
        ] = [],  # noqa: B006 (FastAPI copies it)
        contains: Annotated[
            list[str], Query(description="Only reviews whose value contains this: column=part.", max_length=100)
        ] = [],  # noqa: B006
        text: Annotated[str, Query(description="Only sentences that contain this.", max_length=1000)] = "",
        area: Annotated[str, Query(description="Only this polygon of the map: x y x y ...", max_length=10_000)] = "",
    ) -> Response:
        """Compare the shares of the aspects by a column of the reviews; by default the first that has groups."""
        scope = Scope(where, contains, text, area)
        return json_response(await service.compute(compare_by_column, workbench, column, scope))

    @router.get("/values", responses=describe_json(ColumnValues))
    async def values(column: Column = None) -> Response:
        """Get the columns of the reviews, and of one column its groups and the group of each review."""
        return json_response(await service.compute(column_values, workbench, column))

    @router.get("/map", responses=describe_file(BYTES))
    async def sentence_map() -> Response:
        """Get a position for every sentence: pairs of 32-bit floats (little-endian), from -1 to 1."""
        reviews, found = await service.compute(workbench.sentence_map)
        return Response(found.astype("<f4").tobytes(), media_type=BYTES, headers={"x-awatt-reviews": str(reviews)})

    @router.post("/words", responses=describe_json(Words))
    async def words(body: IdsBody) -> Response:
        """Get the words that decide in these sentences, per aspect: [start, end, weight], counted in UTF-16 units."""
        found = await service.compute(workbench.words, body.ids)
        words = {
            key: {
                name: [[_utf16(each.text, w.start), _utf16(each.text, w.end), w.weight] for w in words]
                for name, words in each.words.items()
            }
            for key, each in found
        }
        return json_response(Words(words))

    @router.put("/sentences/{key}", responses=describe_json(Project))
    async def label_sentence(key: Key, body: LabelBody) -> Response:
        """Label a sentence, which makes it an example, or remove its label (null)."""
        return await service.change(workbench.label_sentence, key, body.aspects, body.seen_label, body.person)

    @router.delete("/sentences/{key}", responses=describe_json(Project))
    async def remove_label(key: Key) -> Response:
        """Remove the label of a sentence. If people gave it with their names, the response is 409: only they can.

        A person does so with PUT, a label of null and the name.
        """
        return await service.change(workbench.label_sentence, key, None)

    @router.patch("/settings", responses=describe_json(Project))
    async def settings(body: SettingsBody) -> Response:
        """Set the project's threshold."""
        return await service.change(store.set_threshold, body.threshold)

    @router.post("/undo", responses=describe_json(Project))
    async def undo(body: RevisionBody | None = None) -> Response:
        """Undo the last action."""
        return await service.change(store.undo, body and body.revision)

    @router.post("/redo", responses=describe_json(Project))
    async def redo(body: RevisionBody | None = None) -> Response:
        """Redo the action that was undone last."""
        return await service.change(store.redo, body and body.revision)

    @router.get("/export/{kind}", responses=describe_file(*MEDIA_TYPES.values()))
    async def download(
        kind: Annotated[str, Path(examples=["results.csv"])],
        bom: Annotated[bool, Query(description="Begin a CSV with a byte order mark, for Excel.")] = False,
        title: Annotated[str, Query(description="Title of the report.", max_length=200)] = "",
    ) -> Response:
        """Download the results, the examples, the detector or a report as a file."""
        if kind not in MEDIA_TYPES:
            raise NotFoundError(f"there is no export '{kind[:40]}'. Choose one of: {', '.join(MEDIA_TYPES)}.")
        content = await service.compute(export, workbench, kind, bom, title)
        headers = {"content-disposition": f'attachment; filename="awatt-{kind}"'}
        return Response(content, media_type=MEDIA_TYPES[kind], headers=headers)

    @router.get("/version", responses=describe_json(Counters))
    async def version() -> Response:
        """Get the counters only, to notice what another tab or process has changed."""
        return json_response(Counters(**vars(await service.run(store.version)), project=store.project_id))

    return router


def _utf16(text: str, offset: int) -> int:
    """The offset as a browser counts it, in UTF-16 units: an emoji is one character in Python and two units there."""
    return offset if text.isascii() else len(text[:offset].encode("utf-16-le")) // 2
