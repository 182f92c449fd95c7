"""The API of the page: the project's reviews, scores, words, corrections, history and files."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from awatt.server.export import KINDS, export
from awatt.server.limits import NotFoundError
from awatt.server.reading import preview, read_reviews, read_sample
from awatt.server.requests import IdsBody, SaidBody, SampleBody, SettingsBody
from awatt.server.responses import ERRORS, Columns, Counters, Loaded, Project, Sentences, Words, gives, gives_bytes
from awatt.server.service import Service, as_json

Key = Annotated[int, Path(ge=1, le=2**53)]
Format = Annotated[str, Query(description="jsonl, csv, tsv, parquet or txt, maybe with .gz", max_length=20)]
BYTES = "application/octet-stream"
UPLOAD = {"requestBody": {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}}


def make_routes(service: Service) -> APIRouter:
    """Under ``/v1/project``."""
    router = APIRouter(
        prefix="/v1/project",
        tags=["project"],
        responses=ERRORS,
        default_response_class=Response,
        dependencies=[Depends(service.check_project)],
    )
    store, workbench = service.store, service.workbench

    @router.get("", responses=gives(Project))
    async def project() -> Response:
        """Aspects, examples, settings and counters."""
        return await service.state()

    @router.delete("", responses=gives(Project))
    async def clear() -> Response:
        """Begin with an empty project; can be undone."""
        return await service.change(store.clear)

    @router.post("/sample", responses=gives(Project))
    async def sample(body: SampleBody) -> Response:
        """Replace everything by the bundled sample; can be undone."""
        return await service.change(lambda: store.load_sample(*read_sample(body.domain)))

    @router.post("/columns", openapi_extra=UPLOAD, responses=gives(Columns))
    async def columns(request: Request, format: Format) -> Response:
        """The columns and first rows of a file."""
        names, rows = await service.run(preview, await request.body(), format)
        return as_json({"columns": names, "rows": rows})

    @router.post("/reviews", openapi_extra=UPLOAD, responses=gives(Loaded))
    async def load(
        request: Request,
        format: Format,
        column: Annotated[str, Query(max_length=1000)] = "text",
        split: Annotated[bool, Query(description="Rows are reviews: split them into sentences.")] = True,
    ) -> Response:
        """Replace the reviews by those of a file; aspects and examples stay. Can be undone."""
        reviews, faults = await service.run(read_reviews, await request.body(), format, column, split, service.limits)
        await service.run(store.load_reviews, reviews)
        return as_json({"reviews": len(reviews), "left_out": len(faults), "faults": faults[:20]})

    @router.get("/sentences", responses=gives(Sentences))
    async def sentences() -> Response:
        """The id, review and text of every sentence."""
        found = await service.run(workbench.reviews)
        return as_json({"reviews": found.version, "ids": found.ids, "review": found.reviews, "texts": found.texts})

    @router.get("/scores", responses=gives_bytes(BYTES))
    async def scores() -> Response:
        """Scores of every sentence and aspect, row by row, as 32-bit floats (little-endian)."""
        version, aspects, found = await service.run(workbench.scores)
        headers = {"x-awatt-learned": str(version.learned), "x-awatt-reviews": str(version.reviews)}
        headers["x-awatt-aspects"] = ",".join(str(aspect.id) for aspect in aspects)
        return Response(found.astype("<f4").tobytes(), media_type=BYTES, headers=headers)

    @router.get("/map", responses=gives_bytes(BYTES))
    async def sentence_map() -> Response:
        """A place for every sentence: pairs of 32-bit floats (little-endian), from -1 to 1."""
        reviews, found = await service.run(workbench.sentence_map)
        return Response(found.astype("<f4").tobytes(), media_type=BYTES, headers={"x-awatt-reviews": str(reviews)})

    @router.post("/words", responses=gives(Words))
    async def words(body: IdsBody) -> Response:
        """The words that decide in these sentences, by aspect: [start, end, weight] in UTF-16 units."""
        found = await service.run(workbench.words, body.ids)
        shown = {
            str(key): {
                name: [[_units(each.text, w.start), _units(each.text, w.end), w.weight] for w in marked]
                for name, marked in each.words.items()
            }
            for key, each in found
        }
        return as_json({"words": shown})

    @router.put("/sentences/{key}", responses=gives(Project))
    async def judge(key: Key, body: SaidBody) -> Response:
        """A person says what a sentence mentions; it becomes an example. Null takes back what was said."""
        seen = body.seen if "seen" in body.model_fields_set else ...
        return await service.change(workbench.judge_sentence, key, body.aspects, seen)

    @router.delete("/sentences/{key}", responses=gives(Project))
    async def forget(key: Key) -> Response:
        """Take back what was said of a sentence."""
        return await service.change(workbench.judge_sentence, key, None)

    @router.patch("/settings", responses=gives(Project))
    async def settings(body: SettingsBody) -> Response:
        """The project's threshold."""
        return await service.change(store.set_threshold, body.threshold)

    @router.post("/undo", responses=gives(Project))
    async def undo() -> Response:
        """Take back the last action."""
        return await service.change(store.undo)

    @router.post("/redo", responses=gives(Project))
    async def redo() -> Response:
        """Do again what was taken back last."""
        return await service.change(store.redo)

    @router.get("/export/{kind}", responses=gives_bytes(*KINDS.values()))
    async def download(kind: Annotated[str, Path(examples=["results.csv"])]) -> Response:
        """Results, examples or the detector, as a file."""
        if kind not in KINDS:
            raise NotFoundError(f"there is no export '{kind[:40]}'. Choose one of: {', '.join(KINDS)}.")
        content = await service.run(export, workbench, kind)
        headers = {"content-disposition": f'attachment; filename="awatt-{kind}"'}
        return Response(content, media_type=KINDS[kind], headers=headers)

    @router.get("/version", responses=gives(Counters))
    async def version() -> Response:
        """The counters only: what another tab or process has changed."""
        return as_json({"project": store.identity, **dataclasses.asdict(await service.run(store.version))})

    return router


def _units(text: str, place: int) -> int:
    """Python counts characters, a browser counts UTF-16 units: an emoji is two."""
    return place if text.isascii() else len(text[:place].encode("utf-16-le")) // 2
