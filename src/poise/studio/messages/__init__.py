"""The messages between the page and the server: MessagePack maps over one binary websocket at `/ws`.

Every message is a map with a `type`; names are in camelCase on the wire. `web/src/messages.ts` is generated from these
definitions (`python -m poise.studio.typescript`), so both sides agree. World: metres, Y up, right-handed; the person
faces +Z, left is +X; quaternions are w, x, y, z. Bytes are little-endian arrays. Those of poses ("world") are float32
with seven numbers per joint: its position and its rotation in the world.

The flow:
 1. The page opens the socket and sends `hello`, with the token of an earlier session to resume it. The server answers
    `welcome`, `models`, `body` (skeleton and mesh; again whenever the skeleton changes), `scene` and `pose`.
 2. Each action of the user is one message. The server changes the scene. It answers `pose` if the pose changed, and
    `scene` if anything else changed. The server owns the scene; the page draws what it receives.
 3. Streamed messages (`drag`, `turnJoints`, `takePose`, `putProp`, `dragLatent`, `hoverLatent`, `movePoint`, `dragKey`)
    have `seq`, a number that grows over the session. If several wait, only the newest is answered; `pose.seq` says
    which one. All messages from the first `drag` to the one with `last` are one step of undo. The smooth model answers
    them (`fine` is false), except the last, which the fine model answers. `putHandle` and `setFrame` have `seq` too, so
    that the page knows which messages are not answered yet. Messages with the same `gesture` are one step of undo, such
    as a handle that is created by dragging and then keyed.
 4. Long tasks (learning, exporting, loading, solving) answer with `progress` until its `share` is 1, then with the
    result. `cancel` ends them.
 5. A mistake is answered with `error`, in words for the user. The connection stays open.

The page uploads files by `POST /upload?name=walk.bvh`, with the session token in the header `X-Poise-Session`. The
answer is `{"upload": id}`, and messages refer to the file by this id. The page fetches files by GET of the address in
`file`.
"""

from poise.studio.messages.from_page import *
from poise.studio.messages.from_server import *
from poise.studio.messages.scene import *
