"""What the page and the server say to each other: MessagePack maps over one binary websocket at `/ws`.

Every message is a map with a `type`; names are in camelCase on the wire. `web/src/messages.ts` is generated from these
definitions (`python -m poise.studio.typescript`), so the two cannot drift. World: metres, Y up, right-handed, the
person faces +Z, left is +X; quaternions are w, x, y, z. Bytes are little-endian arrays; those of poses ("world") are
float32, per joint its position and its rotation in the world: 3 + 4 numbers.

The flow:
 1. The page opens the socket and sends `hello`, with the token of an earlier session to resume it. The server answers
    `welcome`, `models`, `body` (skeleton and mesh; again whenever the skeleton changes), `scene` and `pose`.
 2. What a person does is one message each. The server changes the scene and answers `scene` when something other than
    the pose changed, and `pose` when that did. The server's scene is the truth; the page draws what it receives.
 3. Messages that stream (`drag`, `turnJoints`, `takePose`, `putProp`, `dragLatent`, `hoverLatent`, `movePoint`,
    `dragKey`) carry `seq`, a number that grows over the session. The newest wins: those that the solver had no time for
    are dropped. `pose.seq` says which one a pose answers. Everything from the first `drag` to the one with `last` is
    one step of undo; the smooth model answers (`fine` false) until the last one, which the fine model answers.
    `putHandle` and `setFrame` carry `seq` too, so that the page knows what it has not been answered yet.
    Messages of the same `gesture` (a handle made by dragging it, and keyed where it is left) are one step of undo.
 4. What takes long (learning, exporting, loading, solving) answers with `progress` until its `share` is 1, then with
    its result; `cancel` ends it.
 5. A mistake answers `error`, in words to show to a person; the connection lives on.

Files go in by `POST /upload?name=walk.bvh` with the session token in the header `X-Poise-Session`, answered with
`{"upload": id}` that messages then name; files come out by GET of the address in `file`.
"""

from poise.studio.messages.from_page import *
from poise.studio.messages.from_server import *
from poise.studio.messages.scene import *
