"""The plugin that calls Quipu from opencode, which has functions in the place of commands."""

import json
from collections.abc import Mapping

MARK = "// Written by `quipu setup --hooks`; `quipu hook remove` deletes it.\n"
_PRIME = ["session-start"]
_RECALL = ["session-start", "first-prompt"]
_CODE = """import { existsSync, readFileSync } from "node:fs"
import { delimiter, join, resolve, sep } from "node:path"

const URL = process.env.QUIPU_URL || @URL@
const KEY_FILE = @KEY_FILE@
const EVENTS = @EVENTS@
const TIME = { "session-start": 1000, "first-prompt": 300 }

export const Quipu = async ({ directory, worktree }) => {
  const root = worktree && worktree !== "/" ? worktree : directory
  const below = (process.env.QUIPU_HOOKS_OFF || "").split(delimiter).filter(Boolean)
  const listed = below.some((folder) => (root + sep).startsWith(resolve(folder) + sep))
  if (process.env.QUIPU_HOOKS === "0" || listed || existsSync(join(root, ".quipu", "off"))) return {}
  const texts = new Map()

  const ask = async (event, session, more) => {
    try {
      const key = process.env.QUIPU_KEY || (KEY_FILE ? readFileSync(KEY_FILE, "ascii").trim() : "")
      const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) }
      const body = JSON.stringify({ session_id: session, cwd: directory, root, ...more })
      const signal = AbortSignal.timeout(TIME[event])
      const answer = await fetch(`${URL}/hook/opencode/${event}`, { method: "POST", headers, body, signal })
      const found = answer.ok ? await answer.text() : ""
      return found ? JSON.parse(found).text || "" : ""
    } catch {
      return ""
    }
  }
  const start = async (session, source) => {
    const intro = join(root, ".quipu", "prime.md")
    const own = existsSync(intro) ? { intro: readFileSync(intro, "utf8").slice(0, 8192) } : {}
    texts.set(session, [await ask("session-start", session, { source, ...own })])
    while (texts.size > 100) texts.delete(texts.keys().next().value)
  }

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!texts.has(sessionID)) await start(sessionID, "startup")
      if (!EVENTS.includes("first-prompt")) return
      const prompt = parts.map((part) => (part.type === "text" && !part.synthetic ? part.text : "")).join("\\n")
      const found = await ask("first-prompt", sessionID, { prompt: prompt.trim().slice(0, 2000) })
      if (found) texts.get(sessionID)?.push(found)
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const found = (texts.get(sessionID) || []).filter(Boolean)
      if (found.length) output.system.push(found.join("\\n"))
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID
      if (event.type === "session.compacted" && session) await start(session, "compact")
    },
  }
}
"""


def plugin(level: str, options: Mapping[str, str]) -> str:
    """The file for a level; its options are the address and the file with the key."""
    filled = {
        "@URL@": options.get("url", "http://127.0.0.1:7847"),
        "@KEY_FILE@": options.get("key-file", ""),
        "@EVENTS@": _RECALL if level == "recall" else _PRIME,
    }
    code = _CODE
    for name, value in filled.items():
        code = code.replace(name, json.dumps(value))
    return MARK + code
