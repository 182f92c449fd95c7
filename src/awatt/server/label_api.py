"""The API of labelling: suggested aspects, many labels at once, notes, imports, whole reviews, and who said what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from awatt.server.importing import read_labelled
from awatt.server.people import People, compare_labels
from awatt.server.progress import Step
from awatt.server.project_api import UPLOAD, Format
from awatt.server.requests import AcceptBody, GroupsBody, Key, LabelsBody, NoteBody
from awatt.server.responses import ERRORS, Imported, Project, Review, describe_json, json_response
from awatt.server.service import Service
from awatt.server.suggesting import SuggestedAspects, suggest_new_aspects


def make_routes(service: Service) -> APIRouter:
    """Further routes under ``/v1/project``."""
    router = APIRouter(
        prefix="/v1/project",
        tags=["labels"],
        responses=ERRORS,
        default_response_class=Response,
        dependencies=[Depends(service.check_project)],
    )
    store, workbench = service.store, service.workbench

    @router.get("/suggested-aspects", responses=describe_json(SuggestedAspects))
    async def suggested_aspects() -> Response:
        """Get what the sentences talk about: groups of words that may be aspects, without those that exist already."""
        return json_response(await service.compute(suggest_new_aspects, workbench))

    @router.post("/suggested-aspects", responses=describe_json(Project))
    async def accept_suggestion(body: AcceptBody) -> Response:
        """Add a suggested aspect with examples; the suggestions that it consists of are not made again."""
        texts = service.check_texts(body.examples, "examples")
        return await service.change(store.accept_suggestion, body.name, texts, body.groups)

    @router.post("/suggested-aspects/dismiss", responses=describe_json(Project))
    async def dismiss(body: GroupsBody) -> Response:
        """Do not make these suggestions again."""
        return await service.change(store.dismiss, body.groups)

    @router.post("/labels", responses=describe_json(Project))
    async def label_sentences(body: LabelsBody) -> Response:
        """Label several sentences at once, or remove their labels (null); undone together.

        If the label of any differs from its ``seen``, the response is 409, lists the ids, and nothing changes.
        """
        labels = [(each.id, each.aspects, each.seen_label) for each in body.labels]
        return await service.change(store.label_sentences, labels, body.person)

    @router.put("/notes/{key}", responses=describe_json(Project))
    async def set_note(key: Key, body: NoteBody) -> Response:
        """Write a note on a sentence; an empty one removes it."""
        return await service.change(lambda: store.set_note(store.sentence_text(key), body.note))

    @router.post("/examples", openapi_extra=UPLOAD, responses=describe_json(Imported))
    async def import_examples(
        request: Request, format: Format, name: Annotated[str, Query(max_length=1000)] = "labels"
    ) -> Response:
        """Import labelled sentences: a file with the columns text and aspects, or exported results. Can be undone."""
        labelled = await service.compute(read_labelled, await request.body(), format, service.limits)
        return json_response(Imported(await service.compute(store.import_examples, labelled, name)))

    @router.get("/reviews/{number}", responses=describe_json(Review))
    async def review(number: Key) -> Response:
        """Get a whole review: its sentences and its other columns."""
        return json_response(Review(*await service.run(store.review, number)))

    @router.get("/people", responses=describe_json(People))
    async def people() -> Response:
        """Get who has labelled how much, and how far each two people agree."""
        return json_response(await service.compute(lambda: compare_labels(store.content(), service.limits.people)))

    @router.get("/progress", responses=describe_json(Step))
    async def progress() -> Response:
        """Get how far a load is: reading rows, or detecting in sentences."""
        return json_response(workbench.progress.step)

    @router.delete("/progress", responses=describe_json(Step))
    async def cancel() -> Response:
        """Cancel the load that is running: its request gets the status 409 and the code cancelled."""
        workbench.progress.cancel()
        return json_response(workbench.progress.step)

    return router
