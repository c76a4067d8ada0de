/** The line to the server: one binary websocket that comes back by itself and resumes its session. */
import { decode, encode } from "@msgpack/msgpack";
import { signal } from "@preact/signals";
import { type ClientMessage, PROTOCOL, type ServerMessage } from "./messages";

export type LineState = "connecting" | "open" | "lost";

const FIRST_WAIT = 250; // milliseconds
const LONGEST_WAIT = 4000;
const TOKEN = "poise.session"; // of this tab
const KNOWN = "poise.sessions"; // of this browser, the newest first
const MOST_KNOWN = 20;

export const lineState = signal<LineState>("connecting");

export class Line {
  private socket: WebSocket | null = null;
  private wait = FIRST_WAIT;
  private seq = Date.now(); // larger than any of an earlier page that had the same session
  token: string | null = sessionStorage.getItem(TOKEN);

  constructor(private readonly receive: (message: ServerMessage) => void) {
    this.connect();
  }

  /** Says something; what is said while the line is lost is not kept: the server's scene is the truth. */
  send(message: ClientMessage): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(encode(message, { ignoreUndefined: true }));
    return true;
  }

  nextSeq(): number {
    this.seq += 1;
    return this.seq;
  }

  get lastSeq(): number {
    return this.seq;
  }

  private connect(): void {
    const address = new URL("ws", document.baseURI);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.search = location.search; // the token that an off-loopback server asks for
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () =>
      this.send({ type: "hello", protocol: PROTOCOL, token: this.token, known: known() }),
    );
    socket.addEventListener("message", (event) => this.hear(event.data as ArrayBuffer));
    socket.addEventListener("close", () => this.retry());
    this.socket = socket;
  }

  private hear(data: ArrayBuffer): void {
    const message = decode(new Uint8Array(data)) as ServerMessage;
    if (message.type === "welcome") {
      this.token = message.token;
      sessionStorage.setItem(TOKEN, message.token);
      remember(message.token);
      this.wait = FIRST_WAIT;
      lineState.value = "open";
    } else if (lineState.value === "lost") lineState.value = "connecting"; // the server answers, but is not ready
    this.receive(message);
  }

  private retry(): void {
    lineState.value = "lost";
    setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(this.wait * 1.6, LONGEST_WAIT);
  }
}

function known(): string[] {
  return (localStorage.getItem(KNOWN) ?? "").split(" ").filter(Boolean);
}

function remember(token: string): void {
  const tokens = [token, ...known().filter((other) => other !== token)];
  localStorage.setItem(KNOWN, tokens.slice(0, MOST_KNOWN).join(" "));
}
