#!/usr/bin/env python3
"""An agent in one file: a model picks tools, this loop runs them on recurgentd. Python's standard library alone.

    python3 agent.py "What is 20 + 22?"

RECURGENT_URL (http://127.0.0.1:8420) and RECURGENT_TOKEN say where the tools are; OPENAI_BASE_URL
(https://api.openai.com/v1), OPENAI_API_KEY and OPENAI_MODEL (gpt-4.1) where the model is.
"""

import json
import os
import sys
import urllib.error
import urllib.request

TOOLS = os.environ.get("RECURGENT_URL", "http://127.0.0.1:8420")
MODEL_URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL = os.environ.get("OPENAI_MODEL", "gpt-4.1")
MOST_TOOLS = 100  # what one request to a model may offer
MOST_TURNS = 10


def send(url, token, body=None):
    """Sends the body as JSON, or asks without one, and returns the JSON of the reply."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=600) as reply:
        return json.load(reply)


def daemon(path, body=None):
    return send(TOOLS + path, os.environ.get("RECURGENT_TOKEN"), body)


def run(call, session):
    """Runs the function that the model asked for and returns what the model is to see."""
    function = call["function"]
    try:
        body = {"arguments": function["arguments"], "session_id": session}
        outcome = daemon("/v1/functions/" + function["name"], body)["outcome"]
    except urllib.error.HTTPError as refused:  # an unknown tool, or arguments that are no JSON
        problem = json.load(refused)
        return {"error": problem["detail"], "hint": problem["hint"]}
    if outcome["ok"]:
        return outcome["value"]
    return {"error": outcome["error_type"], "message": outcome["error_message"]}


def answer(question):
    session = daemon("/v1/sessions", {"role": "assistant"})["id"]  # the calls share its memory
    messages = [{"role": "user", "content": question}]
    for _ in range(MOST_TURNS):
        # Each turn, since tools come and go.
        tools = daemon(f"/v1/tools?format=openai&limit={MOST_TOOLS}")["tools"]
        request = {"model": MODEL, "messages": messages}
        if tools:
            request["tools"] = tools
        reply = send(MODEL_URL + "/chat/completions", os.environ.get("OPENAI_API_KEY"), request)
        message = reply["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            result = run(call, session)
            print(f"{call['function']['name']} {call['function']['arguments']} -> {json.dumps(result)}", file=sys.stderr)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
    raise SystemExit(f"no answer after {MOST_TURNS} turns")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(answer(sys.argv[1]))
