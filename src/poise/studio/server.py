"""The studio's web server: the page, the websocket, uploads and downloads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from os import cpu_count
from pathlib import Path

import uvicorn
from h11 import LocalProtocolError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from poise.apps.warm_up import Pace
from poise.errors import PoiseError
from poise.studio.connection import Connection, Sessions
from poise.studio.listening import PageProtocol, PatientProtocol
from poise.studio.memory import keep_trimmed
from poise.studio.models import ModelStore
from poise.studio.security import Access, Gate
from poise.studio.uploads import ARCHIVE, RefusedUploadError, Uploads, unpack

PAGE = Path(__file__).parent / "web" / "dist"
LARGEST_MESSAGE = 1_000_000  # bytes
MOST_DIGITS = 19
NOT_UTF_8 = "Invalid UTF-8 sequence received from client."  # what uvicorn logs of such text, with a traceback
PAGE_PATIENCE = 300.0  # seconds without a reply to a ping: a first start compiles for minutes
SESSION_HEADER = "x-poise-session"
HANG_UP = {"Connection": "close"}  # for clients that would keep sending unwanted data
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Poise studio</title>
<body style="font: 16px/1.5 system-ui; max-width: 34em; margin: 15vh auto; padding: 0 1em">
<h1>The page has not been built</h1><p>The studio's server runs, but its page is not there yet. In a checkout of Poise
build it with <code>make setup</code>, which needs Node 20 or newer, and reload this page.</p></body></html>"""


class Studio:
    """The shared state of requests: models, uploads, sessions, and solver threads."""

    def __init__(
        self,
        models: ModelStore,
        *,
        access: Access | None = None,
        page: Path = PAGE,
        files: Sequence[Path] = (),
        preparing: Pace | None = None,
    ) -> None:
        self.models, self.access, self.page = models, access or Access(), page
        self.preparing = preparing
        self.uploads = Uploads()
        self.sessions = Sessions(models, self.uploads, files)
        self.workers = ThreadPoolExecutor(max(2, cpu_count() or 2), thread_name_prefix="poise-solver")

    def app(self) -> Starlette:
        """The application to serve."""
        files, page = Route("/files/{upload}/{name}", self._download), Route("/{path:path}", self._serve_page)
        upload = Route("/upload", self._upload, methods=["POST"])
        gate = Middleware(Gate, access=self.access)
        routes = [WebSocketRoute("/ws", self._talk), upload, files, page]
        return Starlette(routes=routes, middleware=[gate], lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        trimming = asyncio.create_task(keep_trimmed())
        yield
        trimming.cancel()
        self.close()

    def close(self) -> None:
        """Stop everything and remove the uploads."""
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.sessions.close()
        self.uploads.close()

    async def _talk(self, websocket: WebSocket) -> None:
        await Connection(websocket, self.sessions, self.workers, preparing=self.preparing).run()

    async def _upload(self, request: Request) -> Response:
        owner = request.headers.get(SESSION_HEADER, "")
        if owner not in self.sessions:
            return _words("an upload names the session it is for", 403, **HANG_UP)
        name = request.query_params.get("name", "")
        text = request.headers.get(
            "content-length", ""
        )  # parsed if it has as few digits as a file's size can have
        announced = int(text) if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS else None
        try:
            arrived = await self.uploads.take(name, request.stream(), owner=owner, announced=announced)
            if arrived.name.lower().endswith(ARCHIVE):
                taken = await run_in_threadpool(unpack, arrived, self.uploads)
            else:
                taken = [self.uploads.keep_arrived(arrived)]
        except RefusedUploadError as error:
            return _words(str(error), 413, **HANG_UP)
        except OSError as error:
            return _words(f"the file cannot be stored: {error.strerror}", 507, **HANG_UP)
        except ClientDisconnect:
            return _words("the upload broke off", 400)
        files = [{"upload": upload.id, "name": upload.name} for upload in taken]
        return JSONResponse({"upload": taken[0].id, "files": files})

    async def _download(self, request: Request) -> Response:
        with suppress(PoiseError):
            upload = self.uploads.find(request.path_params["upload"])
            if upload.path.is_file():
                return FileResponse(upload.path, filename=upload.name)
        return _words("there is no such file any more", 404)

    async def _serve_page(self, request: Request) -> Response:
        if not (self.page / "index.html").is_file():
            return HTMLResponse(NOT_BUILT, status_code=503)
        with suppress(OSError, ValueError):  # of a name that is invalid
            wanted = (self.page / (request.path_params["path"] or "index.html")).resolve()
            if wanted.is_relative_to(self.page.resolve()) and wanted.is_file():
                return FileResponse(wanted, headers={"Cache-Control": "no-cache"})
        return _words("there is no such page", 404)


def server_of(studio: Studio) -> uvicorn.Server:
    """A server for a listening socket."""
    config = uvicorn.Config(
        studio.app(), http=PatientProtocol.for_access(studio.access), ws=PageProtocol,
        ws_max_size=LARGEST_MESSAGE, ws_per_message_deflate=False,
        loop="asyncio", log_level="error", timeout_graceful_shutdown=2, server_header=False,
        ws_ping_timeout=PAGE_PATIENCE,
    )  # fmt: skip
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(_is_news)
    return uvicorn.Server(config)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether an error is the studio's: malformed HTTP and text are answered before the studio sees them."""
    malformed = record.exc_info is not None and isinstance(record.exc_info[1], LocalProtocolError)
    return not malformed and record.msg != NOT_UTF_8


def _words(text: str, status: int, **headers: str) -> PlainTextResponse:
    return PlainTextResponse(text + "\n", status_code=status, headers=headers)
