#!/bin/sh
# Six steps with recurgentd: a session, a call, a stream, a verdict, the history, the tools. It needs curl and sed.
set -eu
url=${RECURGENT_URL:-http://127.0.0.1:8420}

ask() { curl -sS --fail-with-body -H "Authorization: Bearer ${RECURGENT_TOKEN:-}" "$@"; }
post() { ask -H 'Content-Type: application/json' "$@"; }
text() { sed 's/.*"'"$1"'":"\([^"]*\)".*/\1/'; } # of the last such member of a line
value() { sed 's/.*"ok":true,"value":\([^,]*\),.*/\1/'; }
key() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; } # one for each call

session=$(post "$url/v1/sessions" -d '{"role": "calculator"}' | text id)
echo "session: $session"

# With respond-async and wait the call goes on when the connection breaks; the same request again has its reply.
added=$(post "$url/v1/sessions/$session/calls" -H "Idempotency-Key: $(key)" -H 'Prefer: respond-async, wait=600' -d '{"method": "add", "args": [2, 3]}')
echo "call: $(echo "$added" | value)"

call=$(post "$url/v1/sessions/$session/calls" -H "Idempotency-Key: $(key)" -H 'Prefer: respond-async' -d '{"method": "sqrt", "args": [2]}' | text call_id)
events=$(ask -N "$url/v1/calls/$call/events" | sed -n 's/^event: //p')
echo "stream:" $events "$(ask "$url/v1/calls/$call" | value)"

verdict=$(post "$url/v1/calls/$(echo "$added" | text call_id)/verdict" -d '{"verdict": "right"}')
echo "verdict: $(echo "$verdict" | text verdict) $(echo "$verdict" | text example_state)"

echo "history:" $(ask "$url/v1/sessions/$session/history" -H 'Accept: application/jsonl' | sed 's/.*"method_name":"\([^"]*\)".*"outcome_summary":{"status":"\([^"]*\)".*/\1=\2/')

echo "tools:" $(ask "$url/v1/tools" | tr '{' '\n' | sed -n 's/^"role":"\([^"]*\)".*/\1/p')
