/** Sending files to the server. */
import { notify } from "./state";
import { sessionToken } from "./studio";

/** A file to open: its name, how it gets to the server, and how the page itself reads it. */
export interface Arriving {
  readonly name: string;
  readonly send: () => Promise<string | null>;
  readonly read: () => Promise<Blob>;
}

export const arriving = (file: File): Arriving => ({
  name: file.name,
  send: () => upload(file),
  read: () => Promise.resolve(file),
});

/** Sends a file to the server; the id under which messages name it. */
export async function upload(file: File): Promise<string | null> {
  const address = new URL("upload", document.baseURI);
  address.searchParams.set("name", file.name);
  try {
    const answer = await fetch(address, {
      method: "POST",
      body: file,
      headers: { "X-Poise-Session": sessionToken() },
    });
    if (answer.ok) return ((await answer.json()) as { upload: string }).upload;
    notify((await answer.text()).trim() || `${file.name} was not taken.`);
  } catch {
    notify(`${file.name} could not be sent: the studio's server is not there just now.`);
  }
  return null;
}
