import { spawn } from "node:child_process"

const PROGRAM = @PROGRAM@
const OPTIONS = @OPTIONS@
const EVENTS = @EVENTS@
const MILLISECONDS = 5000
const MOST = 1 << 18

const run = (event, input) =>
  new Promise((done) => {
    const [program, ...words] = [...PROGRAM, "hook", event, "--client", "opencode", ...OPTIONS]
    const stdio = ["pipe", "pipe", "ignore"]
    const hook = spawn(program, words, { stdio, timeout: MILLISECONDS, windowsHide: true })
    const parts = []
    let size = 0
    hook.stdout.on("data", (part) => (size += part.length) <= MOST && parts.push(part))
    hook.stdin.on("error", () => {})
    hook.on("error", () => done(""))
    hook.on("close", () => {
      try {
        done(JSON.parse(Buffer.concat(parts).toString()).text || "")
      } catch {
        done("")
      }
    })
    hook.stdin.end(JSON.stringify(input))
  })

export const Quipu = async ({ directory }) => {
  if (process.env.QUIPU_HOOKS === "0") return {}
  const texts = new Map()

  const ask = (event, session, more) => run(event, { session_id: session, cwd: directory, ...more })
  const start = async (session, source) => {
    texts.set(session, [await ask("session-start", session, { source })])
    while (texts.size > 100) texts.delete(texts.keys().next().value)
  }

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!texts.has(sessionID)) await start(sessionID, "startup")
      if (!EVENTS.includes("first-prompt")) return
      const prompt = parts.map((part) => (part.type === "text" && !part.synthetic ? part.text : "")).join("\n")
      const answer = await ask("first-prompt", sessionID, { prompt: prompt.trim().slice(0, 2000) })
      if (answer) texts.get(sessionID)?.push(answer)
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const lines = (texts.get(sessionID) || []).filter(Boolean)
      if (lines.length) output.system.push(lines.join("\n"))
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID
      if (event.type === "session.compacted" && session) await start(session, "compact")
    },
  }
}
