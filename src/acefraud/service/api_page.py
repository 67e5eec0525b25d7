"""The page that describes the API. Swagger UI is served from here, so it works without the internet."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import fastapi_offline
from fastapi import APIRouter, Response
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import FileResponse

router = APIRouter(include_in_schema=False)
_FILES: Final = Path(fastapi_offline.__file__).parent / "static"
_FOR_A_DAY: Final = {"Cache-Control": "public, max-age=86400"}
_NO_ICON: Final = "data:,"
_PARAMETERS: Final = {"validatorUrl": None}
"""Swagger UI would otherwise ask a server on the internet whether the document is valid."""


@router.get("/docs")
async def page() -> Response:
    """Every route with examples, to be tried out. Addresses are relative, so that it may be behind a prefix."""
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title="acefraud",
        swagger_js_url="docs/swagger-ui-bundle.js",
        swagger_css_url="docs/swagger-ui.css",
        swagger_favicon_url=_NO_ICON,
        swagger_ui_parameters=_PARAMETERS,
    )


@router.get("/docs/swagger-ui-bundle.js")
async def script() -> Response:
    """What draws the page."""
    return FileResponse(_FILES / "swagger-ui-bundle.js", headers=_FOR_A_DAY)


@router.get("/docs/swagger-ui.css")
async def style() -> Response:
    """How it looks."""
    return FileResponse(_FILES / "swagger-ui.css", headers=_FOR_A_DAY)
