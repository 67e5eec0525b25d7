"""The page that describes the API asks no other host for anything."""

from __future__ import annotations

import json
import re
from urllib.parse import urljoin

from tests.service.conftest import Serving


def test_the_page_and_all_that_it_loads_come_from_the_service(serving: Serving) -> None:
    client = serving.anonymous
    page = client.get("/docs")
    scripts = re.findall(r'<script[^>]*\ssrc="([^"]*)"', page.text)
    styles = re.findall(r'<link[^>]*rel="stylesheet"[^>]*\shref="([^"]*)"', page.text)

    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"https?:|//[a-z]", page.text)
    for places, kind in ((scripts, "javascript"), (styles, "text/css")):
        (loaded,) = [client.get(urljoin("/docs", at)) for at in places]
        assert (loaded.status_code, kind in loaded.headers["content-type"]) == (200, True)
        assert len(loaded.content) > 100_000
        assert "max-age" in loaded.headers["cache-control"]
    assert not re.search(r"url\([\"']?(https?:)?//", client.get("/docs/swagger-ui.css").text)


def test_the_page_describes_the_document_and_has_it_checked_by_nobody(serving: Serving) -> None:
    page = serving.anonymous.get("/docs").text
    (document,) = re.findall(r"url: '([^']*)'", page)
    (validator,) = re.findall(r'"validatorUrl": ([^,]*),', page)

    assert serving.anonymous.get(urljoin("/docs", document)).json()["info"]["title"] == "acefraud"
    assert json.loads(validator) is None
