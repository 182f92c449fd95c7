"""The API of the detector: detection, aspects and examples, report, suggestions."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from awatt.detector.report import Report
from awatt.server.body import JSON
from awatt.server.detection_json import join_detections
from awatt.server.requests import (
    AspectBody,
    AspectChange,
    DetectBody,
    Key,
    MentionsBody,
    NamesBody,
    SuggestBody,
    TextsBody,
)
from awatt.server.responses import (
    ERRORS,
    Aspects,
    AspectWithExamples,
    Detections,
    Project,
    SuggestedSentence,
    Suggestions,
    describe_json,
    json_response,
)
from awatt.server.service import Service


def make_routes(service: Service) -> APIRouter:
    """The routes under ``/v1``."""
    checks = [Depends(service.check_project)]
    router = APIRouter(prefix="/v1", responses=ERRORS, default_response_class=Response, dependencies=checks)
    store, workbench = service.store, service.workbench

    @router.post("/detect", tags=["detect"], responses=describe_json(Detections))
    async def detect(body: DetectBody) -> Response:
        """Detect the aspects of each text: those found, the score of every aspect, and the words that decided."""
        texts = service.check_texts(body.texts)
        found = await service.batcher.submit(texts, body.threshold, body.words)
        return Response(join_detections(found), media_type=JSON)

    @router.get("/report", tags=["advice"], responses=describe_json(Report))
    async def report() -> Response:
        """Estimate the quality by predicting each example from the others, and name the examples to check."""
        return json_response(await service.compute(workbench.report))

    @router.post("/suggest", tags=["advice"], responses=describe_json(Suggestions))
    async def suggest(body: SuggestBody) -> Response:
        """Suggest which sentences to label next."""
        texts = None if body.texts is None else service.check_texts(body.texts)
        suggestions = await service.compute(workbench.suggest, body.k, texts)
        return json_response(Suggestions([SuggestedSentence(**vars(each), id=key) for key, each in suggestions]))

    @router.get("/aspects", tags=["aspects"], responses=describe_json(Aspects))
    async def list_aspects() -> Response:
        """List all aspects with their examples."""
        content = await service.run(store.content)
        aspects = [
            AspectWithExamples(**vars(aspect), examples=[e.text for e in content.examples if aspect.id in e.aspects])
            for aspect in content.aspects
        ]
        return json_response(Aspects(aspects))

    @router.post("/aspects", tags=["aspects"], responses=describe_json(Project))
    async def add_aspect(body: AspectBody) -> Response:
        """Add an aspect with examples. It is detected from then on."""
        return await service.change(store.add_aspect, body.name, service.check_texts(body.examples, "examples"))

    @router.post("/aspects/names", tags=["aspects"], responses=describe_json(Project))
    async def add_names(body: NamesBody) -> Response:
        """Add aspects that are detected by their names alone; names that exist already are left as they are."""
        return await service.change(store.add_aspects, body.names)

    @router.patch("/aspects/{key}", tags=["aspects"], responses=describe_json(Project))
    async def change_aspect(key: Key, body: AspectChange) -> Response:
        """Rename an aspect, or give it its own threshold."""
        threshold = body.threshold if "threshold" in body.model_fields_set else ...
        return await service.change(store.change_aspect, key, body.name, threshold)

    @router.delete("/aspects/{key}", tags=["aspects"], responses=describe_json(Project))
    async def remove_aspect(key: Key) -> Response:
        """Remove an aspect, and the examples that mention no other aspect."""
        return await service.change(store.remove_aspect, key)

    @router.post("/aspects/{key}/examples", tags=["aspects"], responses=describe_json(Project))
    async def add_examples(key: Key, body: TextsBody) -> Response:
        """Add examples to an aspect."""
        return await service.change(store.add_examples, key, service.check_texts(body.texts))

    @router.put("/examples/{key}", tags=["aspects"], responses=describe_json(Project))
    async def label_example(key: Key, body: MentionsBody) -> Response:
        """Set which aspects an example mentions."""
        return await service.change(store.label_example, key, body.aspects)

    @router.delete("/examples/{key}", tags=["aspects"], responses=describe_json(Project))
    async def remove_example(key: Key) -> Response:
        """Remove an example."""
        return await service.change(store.remove_example, key)

    return router
