"""The API of the detector: detect, aspects and examples, report, suggestions."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from awatt.detector.report import Report
from awatt.server.requests import AspectBody, AspectChange, DetectBody, MentionsBody, SuggestBody, TextsBody
from awatt.server.responses import ERRORS, Aspects, Detections, Project, Suggestions, gives
from awatt.server.service import Service, as_json, shown_detection

Key = Annotated[int, Path(ge=1, le=2**53)]


def make_routes(service: Service) -> APIRouter:
    """Under ``/v1``."""
    checks = [Depends(service.check_project)]
    router = APIRouter(prefix="/v1", responses=ERRORS, default_response_class=Response, dependencies=checks)
    store, workbench = service.store, service.workbench

    @router.post("/detect", tags=["detect"], responses=gives(Detections))
    async def detect(body: DetectBody) -> Response:
        """The aspects of each text, the score of every aspect, and the words that decided."""
        texts = service.check_texts(body.texts)
        found = await service.batcher.submit(texts, body.threshold, body.words)
        return as_json({"detections": [shown_detection(each) for each in found]})

    @router.get("/report", tags=["advice"], responses=gives(Report))
    async def report() -> Response:
        """Each example judged by the others: how good to expect it to be, and what to mend."""
        return as_json(dataclasses.asdict(await service.run(workbench.report)))

    @router.post("/suggest", tags=["advice"], responses=gives(Suggestions))
    async def suggest(body: SuggestBody) -> Response:
        """Which sentences to label next."""
        texts = None if body.texts is None else service.check_texts(body.texts)
        found = await service.run(workbench.suggest, body.k, texts)
        return as_json({"suggestions": [{**dataclasses.asdict(each), "id": key} for key, each in found]})

    @router.get("/aspects", tags=["aspects"], responses=gives(Aspects))
    async def list_aspects() -> Response:
        """All aspects with their examples."""
        content = await service.run(store.content)
        listed = [
            {**dataclasses.asdict(aspect), "examples": [e.text for e in content.examples if aspect.id in e.aspects]}
            for aspect in content.aspects
        ]
        return as_json({"aspects": listed})

    @router.post("/aspects", tags=["aspects"], responses=gives(Project))
    async def add_aspect(body: AspectBody) -> Response:
        """Add an aspect with examples; it is detected from now on."""
        return await service.change(store.add_aspect, body.name, service.check_texts(body.examples))

    @router.patch("/aspects/{key}", tags=["aspects"], responses=gives(Project))
    async def change_aspect(key: Key, body: AspectChange) -> Response:
        """Rename an aspect, or give it a threshold of its own."""
        threshold = body.threshold if "threshold" in body.model_fields_set else ...
        return await service.change(store.change_aspect, key, body.name, threshold)

    @router.delete("/aspects/{key}", tags=["aspects"], responses=gives(Project))
    async def remove_aspect(key: Key) -> Response:
        """Remove an aspect, and the examples that mention no other."""
        return await service.change(store.remove_aspect, key)

    @router.post("/aspects/{key}/examples", tags=["aspects"], responses=gives(Project))
    async def add_examples(key: Key, body: TextsBody) -> Response:
        """Add examples to an aspect."""
        return await service.change(store.add_examples, key, service.check_texts(body.texts))

    @router.put("/examples/{key}", tags=["aspects"], responses=gives(Project))
    async def judge_example(key: Key, body: MentionsBody) -> Response:
        """Say which aspects an example mentions."""
        return await service.change(store.judge_example, key, body.aspects)

    @router.delete("/examples/{key}", tags=["aspects"], responses=gives(Project))
    async def remove_example(key: Key) -> Response:
        """Remove an example."""
        return await service.change(store.remove_example, key)

    return router
