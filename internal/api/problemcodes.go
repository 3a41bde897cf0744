package api

import (
	"slices"
)

// Codes of problems. They are part of the interface and do not change; problemKinds describes them.
const (
	codeMalformed       = "malformed_json"
	codeParameter       = "invalid_parameter"
	codeKeyInvalid      = "invalid_idempotency_key"
	codeUnauthenticated = "unauthenticated"
	codeScope           = "insufficient_scope"
	codeForbidden       = "forbidden"
	codeIssuer          = "issuer_unavailable"
	codeCrossOrigin     = "cross_origin"
	codeNotFound        = "not_found"
	codeNoRoute         = "no_such_route"
	codeMethod          = "method_not_allowed"
	codeExists          = "already_exists"
	codeConflict        = "conflict"
	codeCannotUndo      = "cannot_undo"
	codeKeyInUse        = "idempotency_key_in_use"
	codeGone            = "gone"
	codePrecondition    = "precondition_failed"
	codeBodyTooLarge    = "body_too_large"
	codeTooLarge        = "too_large"
	codeMedia           = "unsupported_media_type"
	codeHost            = "host_not_allowed"
	codeInvalid         = "validation_failed"
	codeName            = "invalid_name"
	codeContract        = "invalid_contract"
	codeContext         = "invalid_context"
	codePolicy          = "invalid_policy"
	codeProgram         = "invalid_code"
	codeHistoryValue    = "invalid_history_value"
	codeHistoryElement  = "invalid_history_element"
	codeTimeout         = "invalid_timeout"
	codeSetter          = "invalid_setter"
	codeGeneration      = "invalid_generation"
	codeKeyReused       = "idempotency_key_reused"
	codeInput           = "invalid_input"
	codeNoProgram       = "no_program"
	codeMasked          = "masked_input"
	codeVerdict         = "invalid_verdict"
	codeExample         = "invalid_example"
	codeExampleConflict = "example_conflict"
	codeTooMany         = "too_many"
	codeSecrets         = "secrets_unavailable"
	codeQueueFull       = "queue_full"
	codeRateLimited     = "rate_limited"
	codeStreamsFull     = "streams_full"
	codeInternal        = "internal"
	codeBodiesFull      = "bodies_full"
	codeRepliesFull     = "replies_full"
	codeDraining        = "draining"
	codeReadOnly        = "read_only"
	codeAway            = "database_unavailable"
	codeNotReady        = "not_ready"
	codeMoved           = "session_moved"
	codeUnreachable     = "replica_unreachable"
	codeLost            = "replica_lost"
	codeProvider        = "provider"
	codeUnfitting       = "unfitting_reply"
	codeBudget          = "budget_exceeded"
	codeTimedOut        = "timeout"
	codeIdle            = "upload_idle"
	codeFileTooLarge    = "file_too_large"
	codeRange           = "range_not_satisfiable"
	codeFileInvalid     = "file_invalid"
	codeFileQuota       = "file_quota_exceeded"
	codeFilesFull       = "files_full"
	codeFileDamaged     = "file_damaged"
	codeStorageFull     = "storage_full"
)

// problemKind is one row of the table of problems.
type problemKind struct {
	code   string
	status int
	title  string
	hint   string // default hint, if the problem has none of its own
	retry  string // Retry-After in seconds, or ""
}

// problemKinds is the table of all problems. Replies, /problems/{code} and the metrics use it.
func problemKinds() []problemKind { return append(clientFaults(), daemonFaults()...) }

// clientFaults are the problems that a client can solve, most with status 4xx.
func clientFaults() []problemKind {
	return []problemKind{
		{codeMalformed, 400, "The body cannot be read",
			"Send exactly one JSON value in UTF-8, with no name twice in an object.", ""},
		{codeParameter, 400, "A query parameter or header is not valid", "Compare the request with /openapi.yaml.", ""},
		{codeKeyInvalid, 400, "The Idempotency-Key is not valid",
			"Send 1 to 255 visible ASCII characters; a UUID does well.", ""},
		{codeUnauthenticated, 401, "No known access token",
			"Send the header Authorization: Bearer TOKEN with a token that the daemon knows.", ""},
		{codeScope, 403, "The token may not do this",
			"missing names the scope that it lacks, scopes those that it has; who runs the daemon gives tokens their scopes.", ""},
		{codeForbidden, 403, "The token gives no right here",
			"Ask the issuer for a token whose claims name a namespace; who runs the daemon knows which claim that is.",
			""},
		{codeCrossOrigin, 403, "Requests from other origins are refused",
			"Web pages of other sites may not change anything here; ask from a program or from the same origin, or have --cors-origins name the page's.", ""},
		{codeNotFound, 404, "There is no such thing", "List what there is with the path without the last part.", ""},
		{codeNoRoute, 404, "There is no such path",
			"GET /openapi.yaml lists all paths; names in a path are percent-encoded.", ""},
		{codeMethod, 405, "The path does not have this method", "The Allow header lists the methods of the path.", ""},
		{codeIdle, 408, "The upload came to a halt", "Send on within 30 seconds; nothing of it was kept.", ""},
		{codeExists, 409, "It exists already", "Read it, and change it with If-Match, or choose another name.", ""},
		{codeConflict, 409, "It was changed meanwhile", "Read it again, decide anew, and send the request again.", ""},
		{codeCannotUndo, 409, "The operation cannot be undone",
			"GET /v1/maintenance/audit shows what was done since; undo the later operations first.", ""},
		{codeTooMany, 409, "There are as many as there can be", "Delete one that is not used any more.", ""},
		{codeKeyInUse, 409, "A call with this Idempotency-Key is still running",
			"Wait for it, or ask for it again later with the same key.", "1"},
		{codeGone, 410, "It was deleted or has expired", "Nothing can bring it back over this interface.", ""},
		{codePrecondition, 412, "The revision is another one", "Read it again: the ETag header has its revision.", ""},
		{codeBodyTooLarge, 413, "The body is too large", "Send less, or split it over several calls.", ""},
		{codeTooLarge, 413, "A value is too large", "Keep less in it; docs/configuration.md lists the limits.", ""},
		{codeFileTooLarge, 413, "The file is too large", "Split it; recurgentd serve --file-max sets the bound.", ""},
		{codeRange, 416, "The file has no such bytes", "The header Content-Range says how many it has.", ""},
		{codeMedia, 415, "The body is not JSON", "Send the header Content-Type: application/json.", ""},
		{codeHost, 421, "The daemon answers for this machine only",
			"Speak to localhost or a loopback address, or configure access tokens.", ""},
		{codeInvalid, 422, "The body is not valid",
			"Each entry of errors points at what is wrong; /openapi.yaml describes the whole.", ""},
		{codeName, 422, "A name cannot be a role or a method",
			"Names have 1 to 200 characters of valid UTF-8, no slashes, no control or invisible characters, and are not . or ..", ""},
		{codeContract, 422, "The contract cannot be used",
			"The deliverable is a JSON Schema or has type, required, min_items and constraints; see docs.", ""},
		{codeContext, 422, "The context cannot be used", "A context is a JSON object within the size limit.", ""},
		{codePolicy, 422, "The policy cannot be used",
			"GET /v1/policy lists the names and values in force; nothing of the patch was applied.", ""},
		{codeProgram, 422, "The program was refused", "The detail says what the gate found; nothing was kept.", ""},
		{codeHistoryValue, 422, "The history is not valid", `A history is {"messages": [...]} or null.`, ""},
		{codeHistoryElement, 422, "An element of the history is not valid",
			"Each element is an object with all input and output fields of the signature.", ""},
		{codeTimeout, 422, "The timeout cannot be used", "Leave timeout_ms out for the default.", ""},
		{codeSetter, 422, "A setter takes exactly one argument", `Such as {"method": "name=", "args": ["the value"]}.`,
			""},
		{codeGeneration, 422, "There is no such generation to go to", "GET .../generations lists the kept ones.", ""},
		{codeKeyReused, 422, "The Idempotency-Key was used with another request", "Use a new key for a new request.",
			""},
		{codeFileInvalid, 422, "The file cannot be taken",
			"Send a media type such as text/csv as Content-Type, or none.", ""},
		{codeFileQuota, 429, "There are too many bytes of files",
			"Delete files, or let them expire; the policy's retention.session_file_mib sets the bound.", ""},
		{codeQueueFull, 429, "Too many calls are waiting", "Try again later, with fewer calls at once.", "1"},
		{codeBudget, 429, "A cap of tokens is reached",
			"limit and used are those of the cap, resets_at is when it begins anew; stored programs go on. Who runs the daemon sets caps (policy spend).", ""},
		{codeRateLimited, 429, "Too many requests in a short time",
			"Wait as long as Retry-After says; the header RateLimit says what is left.", "1"},
		{codeStreamsFull, 429, "Too many streams are open",
			"Close event streams and downloads that nobody reads any more.", "5"},
		{codeInput, 422, "An input does not fit the signature",
			"inputs holds a value for each input field of the signature, and no others.", ""},
		{codeNoProgram, 422, "No program answered that call",
			"Setters and predictions run no program; judge a call that a program answered.", ""},
		{codeMasked, 422, "The call had secrets among its arguments",
			"Masked arguments are not kept; put an example with arguments of your own.", ""},
		{codeVerdict, 422, "The verdict cannot be used",
			`Such as {"verdict": "wrong", "expected": 700, "note": "70 percent, not 60"}.`, ""},
		{codeExample, 422, "An example is not valid", `Such as {"args": [1000], "expect": {"value": 700}}.`, ""},
		{codeExampleConflict, 422, "Two examples have the same input", "Keep one of them.", ""},
	}
}

// daemonFaults are the problems that are not the client's fault.
func daemonFaults() []problemKind {
	return []problemKind{
		{codeInternal, 500, "The daemon failed", "The daemon's log has the reason under the request id.", ""},
		{codeFileDamaged, 500, "The file is damaged",
			"Upload it again. Who runs the daemon finds it in the log, and all that is damaged by recurgentd store verify.", ""},
		{codeLost, 502, "The replica that ran the request did not answer",
			"It may have been run. Repeat it with the Idempotency-Key that it had, or look at GET /v1/calls first.",
			"1"},
		{codeProvider, 502, "The model could not be asked", "Nothing was kept; try again later.", "5"},
		{codeUnfitting, 502, "The model's replies do not fit the signature",
			"It was asked twice; say more in the instructions, or try another adapter or model.", ""},
		{codeFilesFull, 507, "There is no room for the file",
			"Delete files, or let them expire; recurgentd serve --files-max sets the bound, the policy storage.owner_share that of one owner, the disk another.", ""},
		{codeStorageFull, 507, "There is no room for what would be stored",
			"share says whose share of what (of) is full. Delete what is not used any more; the policy storage.owner_share and recurgentd serve --storage-max set the bounds.", ""},
		{codeTimedOut, 504, "It did not end in its time",
			"Try again later; calls and predictions of one session run in order.", "1"},
		{codeBodiesFull, 503, "Too many large requests are under way",
			"Try again later, with fewer large requests at once.", "1"},
		{codeRepliesFull, 503, "Too many large replies wait for their readers",
			"Read replies as they come; try again later.", "1"},
		{codeDraining, 503, "The daemon is shutting down", "Try again once it has started anew.", "5"},
		{codeReadOnly, 503, "The daemon cannot write now", "Its disk is full or has failed; reading still works.",
			"10"},
		{codeAway, 503, "The database does not answer",
			"Try again soon: it goes on by itself when the database is back. What was under way may have been kept: repeat it with the Idempotency-Key that it had.", "2"},
		{codeSecrets, 503, "The secret cannot be sealed",
			"recurgentd doctor says what is wrong with --secrets-key-file; nothing was kept.", ""},
		{codeIssuer, 503, "The token cannot be checked now",
			"Try again after Retry-After; tokens of the daemon's file, and those whose key is known, work.", "5"},
		{codeMoved, 503, "The session moves to another replica", "Nothing of the request was kept; send it again.",
			"1"},
		{codeUnreachable, 503, "The replica that owns the session cannot be reached",
			"Nothing was run; send it again. The sessions of a dead replica move to others within seconds.", "1"},
		{codeNotReady, 503, "The daemon is not ready", "Try again soon; /readyz turns 200 when it is.", "1"},
	}
}

// kindOf returns the row of a code, and whether there is one.
func kindOf(code string) (problemKind, bool) {
	kinds := problemKinds()
	i := slices.IndexFunc(kinds, func(k problemKind) bool { return k.code == code })
	if i < 0 {
		return problemKind{}, false
	}
	return kinds[i], true
}
