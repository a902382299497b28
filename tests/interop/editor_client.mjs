// An editor with the official TypeScript SDK: an allowed write, a cancelled turn, a list of sessions; prints what it saw as JSON.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [cwd, ...command] = process.argv.slice(2);
const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const seen = { updates: [], asked: 0, read: 0, written: 0 };
const { agent: to, client: from } = acp.methods;

await acp
  .client({ name: "interop" })
  .onNotification(from.session.update, ({ params }) => void seen.updates.push(params.update.sessionUpdate))
  .onRequest(from.session.requestPermission, ({ params }) => {
    seen.asked += 1;
    const option = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(from.fs.readTextFile, ({ params }) => {
    seen.read += 1;
    return { content: readFileSync(params.path, "utf8") };
  })
  .onRequest(from.fs.writeTextFile, ({ params }) => {
    seen.written += 1;
    writeFileSync(params.path, params.content);
    return {};
  })
  .connectWith(stream, async (ctx) => {
    const capabilities = { fs: { readTextFile: true, writeTextFile: true } };
    seen.initialized = await ctx.request(to.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: capabilities });
    const opened = await ctx.request(to.session.new, { cwd, mcpServers: [] });
    const send = (text) => ctx.request(to.session.prompt, { sessionId: opened.sessionId, prompt: [{ type: "text", text }] });
    seen.modes = opened.modes?.availableModes.map((mode) => mode.id);
    seen.first = await send("Write the word hello into the file x.txt in this folder.");
    const turn = send("Count slowly from one to two thousand.");
    setTimeout(() => ctx.notify(to.session.cancel, { sessionId: opened.sessionId }), 300);
    seen.second = await turn;
    seen.listed = (await ctx.request(to.session.list, { cwd })).sessions.length;
  });
agent.stdin.end();
agent.on("exit", (code) => {
  console.log(JSON.stringify({ ...seen, code }));
  process.exit(0);
});
