"""Access to the studio: this machine, pages that it served itself, and holders of the token.

A page of another site can reach a server on loopback; browsers then send the page's origin (Origin) and the name it
used (Host). A foreign Origin is cross-site; a foreign Host is a name that was made to point here (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from urllib.parse import SplitResult, parse_qs, urlsplit

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "poise-studio"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
MOST_GUESSES, WINDOW = 10, 60.0  # wrong tokens from one client in this many seconds
SALT, COST = (
    b"poise studio",
    2**14,
)  # of the cookie: as costly to guess for a program as the token for a person
MOST_CLIENTS = 1000  # clients that are remembered
POLICY_VIOLATION = 1008  # of websockets
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; "
        "font-src 'self' data:; media-src 'self' blob:; connect-src 'self' blob:; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Access:
    """The address of the studio, and the token that it requires off loopback.

    Whoever has brought the token has a cookie from then on, and is not affected by others' wrong tokens.
    """

    host: str = "127.0.0.1"
    token: str | None = None

    @cached_property
    def cookie(self) -> str:
        """The value of the cookie, the same after a restart with the same token."""
        found = hashlib.scrypt((self.token or "").encode(), salt=SALT, n=COST, r=8, p=1, dklen=32)
        return found.hex()

    def refusal(self, headers: Mapping[str, str], query: str) -> str | None:
        """The reason why a request is refused; None if it is not."""
        named = headers.get("host", "")
        if self.token is None and (_split(f"//{named}").hostname or "") not in {*LOOPBACK_NAMES, self.host}:
            return f"this studio is for this machine alone; {named or 'nobody'!r} is not its name"
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc != named:
            return f"a page from {origin} may not use this studio"
        if self.token is None or self.has_cookie(headers):
            return None
        if any(_is(value, self.token) for value in _tokens(query)) and not _is_embedded(headers):
            return None
        return "this studio asks for its token: open the address that `poise studio` printed"

    def has_cookie(self, headers: Mapping[str, str]) -> bool:
        """Whether a request comes from a browser that has brought the token before."""
        return self.token is not None and _is(_cookie(headers), self.cookie)

    def is_guess(self, headers: Mapping[str, str], query: str) -> bool:
        """Whether a request has a wrong token; pages of other sites cannot guess, whatever they embed."""
        tried = any(_tokens(query)) or bool(_cookie(headers))
        return self.token is not None and tried and not _is_embedded(headers)


class Guesses:
    """Wrong tokens of the last minute, by client."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def are_too_many(self, client: str) -> bool:
        """Whether a client is blocked for now."""
        times = self._wrong.get(client, ())
        return sum(time.monotonic() - then < WINDOW for then in times) >= MOST_GUESSES

    def note(self, client: str, *, wrong: bool) -> None:
        """Count a wrong token."""
        if wrong:
            self._wrong.setdefault(client, deque(maxlen=MOST_GUESSES)).append(time.monotonic())
            self._wrong.move_to_end(client)
            while len(self._wrong) > MOST_CLIENTS:
                self._wrong.popitem(last=False)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Gate:
    """Refuses what `Access` refuses before anything else sees it, and adds isolating headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access, self._guesses = app, access, Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        query = scope["query_string"].decode("latin-1")
        client = (scope.get("client") or ("",))[0]
        if self._guesses.are_too_many(client) and not self._access.has_cookie(headers):
            await _refuse(scope, receive, send, "too many wrong tokens came from there; wait a minute", 429)
            return
        why = self._access.refusal(headers, query)
        if why is not None:
            self._guesses.note(client, wrong=self._access.is_guess(headers, query))
            await _refuse(scope, receive, send, why)
        elif scope["type"] == "http" and scope["path"] == "/" and "token" in parse_qs(query):
            response = RedirectResponse("/", status_code=303)
            cookie = self._access.cookie if self._access.token is not None else ""
            response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict")
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, _with_headers(send))


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str, status: int = 403) -> None:
    if scope["type"] == "http":
        await PlainTextResponse(why + "\n", status_code=status)(scope, receive, send)
        return
    await receive()  # the connection request
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": why})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": f"{why}\n".encode()})


def _with_headers(send: Send) -> Send:
    extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return sending


def _split(address: str) -> SplitResult:
    """The parts of an address; of one that is not valid the name is nobody's."""
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "?", "", "", "")


def _tokens(query: str) -> list[str]:
    """The tokens in the address of a request."""
    return parse_qs(query).get("token", [])


def _is(value: str, expected: str) -> bool:
    return secrets.compare_digest(value.encode(), expected.encode())


def _is_embedded(headers: Mapping[str, str]) -> bool:
    """Whether a page of another site requests this for itself, as for a picture, and not as the next page to show."""
    elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return elsewhere and headers.get("sec-fetch-dest", "document") != "document"


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
