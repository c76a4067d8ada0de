"""The studio's web server: the page, the websocket, uploads and downloads."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from os import cpu_count
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from poise.errors import InvalidValueError, PoiseError
from poise.studio.archives import unpack
from poise.studio.connection import Connection
from poise.studio.models import ModelStore
from poise.studio.security import Access, Gate
from poise.studio.sessions import Sessions
from poise.studio.uploads import ARCHIVE, RefusedUploadError, Uploads

PAGE = Path(__file__).parent / "web" / "dist"
LARGEST_MESSAGE = 1_000_000  # bytes
PORT, PORTS_TRIED = 8420, 20
SESSION_HEADER = "x-poise-session"
HANG_UP = {"Connection": "close"}  # on those who would go on sending what is not wanted
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Poise studio</title>
<body style="font: 16px/1.5 system-ui; max-width: 34em; margin: 15vh auto; padding: 0 1em">
<h1>The page has not been built</h1><p>The studio's server runs, but its page is not there yet. In a checkout of Poise
build it with <code>make setup</code>, which needs Node 20 or newer, and reload this page.</p></body></html>"""


class Studio:
    """What requests share: models, uploads, sessions, and the threads that solve."""

    def __init__(self, models: ModelStore, *, access: Access | None = None, page: Path = PAGE) -> None:
        self.models, self.access, self.page = models, access or Access(), page
        self.uploads = Uploads()
        self.sessions = Sessions(models, self.uploads)
        self.workers = ThreadPoolExecutor(max(2, cpu_count() or 2), thread_name_prefix="poise-solver")

    def app(self) -> Starlette:
        """The application to serve."""
        routes = [
            WebSocketRoute("/ws", self._talk),
            Route("/upload", self._upload, methods=["POST"]),
            Route("/files/{upload}/{name}", self._download),
            Route("/{path:path}", self._serve_page),
        ]
        return Starlette(
            routes=routes, middleware=[Middleware(Gate, access=self.access)], lifespan=self._lifespan
        )

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        self.close()

    def close(self) -> None:
        """Ends what runs and removes what was uploaded."""
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.sessions.close()
        self.uploads.close()

    async def _talk(self, websocket: WebSocket) -> None:
        await Connection(websocket, self.sessions, self.workers).run()

    async def _upload(self, request: Request) -> Response:
        owner = request.headers.get(SESSION_HEADER, "")
        if owner not in self.sessions:
            return _words("an upload names the session it is for", 403, **HANG_UP)
        length = request.headers.get("content-length", "")
        announced = int(length) if length.isdigit() else None
        name = request.query_params.get("name", "")
        try:
            taken = [await self.uploads.take(name, request.stream(), owner=owner, announced=announced)]
            if taken[0].path.suffix.lower() == ARCHIVE:
                taken = await run_in_threadpool(unpack, taken[0], self.uploads)
        except RefusedUploadError as error:
            return _words(str(error), 413, **HANG_UP)
        except ClientDisconnect:
            return _words("the upload broke off", 400)
        files = [{"upload": upload.id, "name": upload.name} for upload in taken]
        return JSONResponse({"upload": taken[0].id, "files": files})

    async def _download(self, request: Request) -> Response:
        try:
            upload = self.uploads.find(request.path_params["upload"])
        except PoiseError:
            return _words("there is no such file any more", 404)
        return FileResponse(upload.path, filename=upload.name)

    async def _serve_page(self, request: Request) -> Response:
        wanted = (self.page / (request.path_params["path"] or "index.html")).resolve()
        if not (self.page / "index.html").is_file():
            return HTMLResponse(NOT_BUILT, status_code=503)
        if not wanted.is_relative_to(self.page.resolve()) or not wanted.is_file():
            return _words("there is no such page", 404)
        return FileResponse(wanted, headers={"Cache-Control": "no-cache"})


def server_of(studio: Studio) -> uvicorn.Server:
    """A server to be run on a socket that listens."""
    config = uvicorn.Config(
        studio.app(), ws="websockets-sansio", ws_max_size=LARGEST_MESSAGE, ws_per_message_deflate=False,
        log_level="warning", timeout_graceful_shutdown=2, server_header=False,
    )  # fmt: skip
    return uvicorn.Server(config)


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens on a port: the one asked for, else the first free one from the usual."""
    tried = [port] if port is not None else [*range(PORT, PORT + PORTS_TRIED), 0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem: OSError | None = None
    for number in tried:
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # No pose waits for the page to acknowledge the one before; connections inherit it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
        except OSError as error:
            listener.close()
            problem = error
        else:
            return listener
    raise InvalidValueError(f"cannot listen on {host}:{tried[0]}: {problem.strerror if problem else ''}")


def _words(text: str, status: int, **headers: str) -> PlainTextResponse:
    return PlainTextResponse(text + "\n", status_code=status, headers=headers)
