// An agent with the official TypeScript SDK that makes every client request once.
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

let cwd = "";

async function prompt(cx) {
  const { sessionId, prompt: blocks } = cx.params;
  const promptText = blocks.map((block) => block.text ?? "").join(" ");
  const read = await cx.client.request("fs/read_text_file", { sessionId, path: `${cwd}/README.md`, line: 1, limit: 1 });
  const terminal = { sessionId, ...(await cx.client.request("terminal/create", { sessionId, command: "echo", args: ["hi"] })) };
  await cx.client.request("terminal/wait_for_exit", terminal);
  const { output } = await cx.client.request("terminal/output", terminal);
  await cx.client.request("terminal/release", terminal);
  const options = [
    { optionId: "y", name: "Yes", kind: "allow_once" },
    { optionId: "n", name: "No", kind: "reject_once" },
  ];
  const toolCall = { toolCallId: "c1", title: "Edit", kind: "edit" };
  const { outcome } = await cx.client.request("session/request_permission", { sessionId, toolCall, options });
  const text = `${promptText}|${read.content.trim()}|${output.trim()}|${outcome.optionId}`;
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  await cx.client.notify("session/update", { sessionId, update });
  return { stopReason: "end_turn" };
}

acp
  .agent({ name: "sdk" })
  .onRequest("initialize", () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest("session/new", (cx) => {
    cwd = cx.params.cwd;
    return { sessionId: "s1" };
  })
  .onRequest("session/prompt", prompt)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
