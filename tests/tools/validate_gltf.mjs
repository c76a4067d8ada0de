// Prints the Khronos validator's report on each file given, one JSON object a line.
import { readFileSync } from "node:fs";
import validator from "gltf-validator";

for (const path of process.argv.slice(2)) {
  const report = await validator.validateBytes(new Uint8Array(readFileSync(path)), { uri: path, maxIssues: 50 });
  console.log(JSON.stringify({ path, issues: report.issues }));
}
