"""The route that tells what is in an image."""

from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Outputs
from haptera.api.requests.endpoint import Caller, Handler
from haptera.model.errors import Code, HapteraError
from haptera.rest import endpoints


@dataclass(frozen=True, slots=True)
class InventoryRoute:
    outputs: Outputs

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.INVENTORY, self.get)

    async def get(self, request: Request, _caller: Caller) -> Response:
        """All files of an image, by its name or its digest: content, mode, owner; its packages."""
        image = request.path_params["image"]
        told = await self.outputs.inventory(image)
        if told is None:
            raise HapteraError(
                "there is no such image here, or no list of its files",
                where=f"image {image}",
                do="see which there are: haptera image list; build one again that is there",
                code=Code.NOT_FOUND,
            )
        return Response(told, media_type="application/json")
