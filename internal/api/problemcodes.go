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
			"missing is the scope that the token lacks, scopes are those that it has; the operator of the daemon " +
				"grants them.", ""},
		{codeForbidden, 403, "The token grants no access here",
			"Ask the issuer for a token whose claims name a namespace; the operator of the daemon knows which claim.",
			""},
		{codeCrossOrigin, 403, "Requests from other origins are refused",
			"Web pages of other origins may not change anything; send the request from a program or from the same " +
				"origin, or add the page's origin to --cors-origins.", ""},
		{codeNotFound, 404, "There is no such thing", "GET the path without its last part to list what exists.", ""},
		{codeNoRoute, 404, "There is no such path",
			"GET /openapi.yaml lists all paths; names in a path are percent-encoded.", ""},
		{codeMethod, 405, "The path does not have this method", "The Allow header lists the methods of the path.", ""},
		{codeIdle, 408, "The upload stalled", "Send it again, with no pause of 30 seconds; nothing was kept.", ""},
		{codeExists, 409, "It exists already", "Read it, and change it with If-Match, or choose another name.", ""},
		{codeConflict, 409, "It was changed meanwhile",
			"Read it again, and send a request that fits what it is now.", ""},
		{codeCannotUndo, 409, "The operation cannot be undone",
			"GET /v1/maintenance/audit shows what was done since; undo the later operations first.", ""},
		{codeTooMany, 409, "The maximum number is reached", "Delete one that is no longer used.", ""},
		{codeKeyInUse, 409, "A call with this Idempotency-Key is still running",
			"Wait for it, or send the request again later with the same key.", "1"},
		{codeGone, 410, "It was deleted or has expired", "Nothing can bring it back over this interface.", ""},
		{codePrecondition, 412, "The revision differs", "Read it again: its ETag header is the current revision.", ""},
		{codeBodyTooLarge, 413, "The body is too large", "Send less, or split it over several calls.", ""},
		{codeTooLarge, 413, "A value is too large", "Make it smaller; docs/configuration.md lists the limits.", ""},
		{codeFileTooLarge, 413, "The file is too large", "Split it; recurgentd serve --file-max sets the limit.", ""},
		{codeRange, 416, "The file does not have these bytes", "The header Content-Range has the file's size.", ""},
		{codeMedia, 415, "The body is not JSON", "Send the header Content-Type: application/json.", ""},
		{codeHost, 421, "The daemon serves this machine only",
			"Use localhost or a loopback address, or configure access tokens.", ""},
		{codeInvalid, 422, "The body is not valid",
			"Each entry of errors points at one mistake; /openapi.yaml describes the body.", ""},
		{codeName, 422, "A name cannot be a role or a method",
			"Names have 1 to 200 characters of valid UTF-8, no slashes, no control or invisible characters, and are not . or ..", ""},
		{codeContract, 422, "The contract cannot be used",
			"The deliverable is a JSON Schema or has type, required, min_items and constraints: docs/contracts.md.", ""},
		{codeContext, 422, "The context cannot be used", "A context is a JSON object within the size limit.", ""},
		{codePolicy, 422, "The policy cannot be used",
			"GET /v1/policy lists the names and values in force; nothing of the patch was applied.", ""},
		{codeProgram, 422, "The program was refused", "The detail says what the check found; nothing was kept.", ""},
		{codeHistoryValue, 422, "The history is not valid", `A history is {"messages": [...]} or null.`, ""},
		{codeHistoryElement, 422, "An element of the history is not valid",
			"Each element is an object with all input and output fields of the signature.", ""},
		{codeTimeout, 422, "The timeout cannot be used", "Leave timeout_ms out for the default.", ""},
		{codeSetter, 422, "A setter takes exactly one argument", `Such as {"method": "name=", "args": ["the value"]}.`,
			""},
		{codeGeneration, 422, "There is no such generation", "GET .../generations lists those that are kept.", ""},
		{codeKeyReused, 422, "The Idempotency-Key was used with another request", "Use a new key for a new request.",
			""},
		{codeFileInvalid, 422, "The file cannot be accepted",
			"Send a media type such as text/csv as Content-Type, or none.", ""},
		{codeFileQuota, 429, "The quota for files is used up",
			"Delete files, or let them expire; the policy's retention.session_file_mib sets the limit.", ""},
		{codeQueueFull, 429, "Too many calls are waiting", "Try again later, with fewer calls at once.", "1"},
		{codeBudget, 429, "A token cap is reached",
			"limit and used describe the cap, resets_at is when it resets; stored programs still run. The operator " +
				"of the daemon sets caps (policy spend).", ""},
		{codeRateLimited, 429, "Too many requests in a short time",
			"Wait for the seconds in Retry-After; the header RateLimit has what is left.", "1"},
		{codeStreamsFull, 429, "Too many streams are open",
			"Close event streams and downloads that nobody reads.", "5"},
		{codeInput, 422, "An input does not fit the signature",
			"inputs holds a value for each input field of the signature, and no others.", ""},
		{codeNoProgram, 422, "No program answered that call",
			"Setters and predictions run no program; judge a call that a program answered.", ""},
		{codeMasked, 422, "The call had secrets among its arguments",
			"Masked arguments are not kept; add an example with arguments of your own.", ""},
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
			"Upload it again. The operator of the daemon finds the reason in the log; recurgentd store verify lists " +
				"all damage.", ""},
		{codeLost, 502, "The replica that ran the request did not answer",
			"It may have run. Send it again with the same Idempotency-Key, or check GET /v1/calls first.",
			"1"},
		{codeProvider, 502, "The request to the model failed", "Nothing was kept; try again later.", "5"},
		{codeUnfitting, 502, "The model's replies do not fit the signature",
			"It was asked twice; write more precise instructions, or try another adapter or model.", ""},
		{codeFilesFull, 507, "There is no room for the file",
			"Delete files, or let them expire. recurgentd serve --files-max limits all files, the policy " +
				"storage.owner_share those of one owner; the disk may also be full.", ""},
		{codeStorageFull, 507, "The storage limit is reached",
			"share and of name the share that is full. Delete what is no longer used; the policy storage.owner_share " +
				"and recurgentd serve --storage-max set the limits.", ""},
		{codeTimedOut, 504, "It did not finish in time",
			"Try again later; calls and predictions of one session run in order.", "1"},
		{codeBodiesFull, 503, "Too many large requests are in progress",
			"Try again later, with fewer large requests at once.", "1"},
		{codeRepliesFull, 503, "Too many large replies wait to be read",
			"Read replies without delay; try again later.", "1"},
		{codeDraining, 503, "The daemon is shutting down", "Try again after its restart.", "5"},
		{codeReadOnly, 503, "The daemon cannot write now", "Its disk is full or has failed; reading still works.",
			"10"},
		{codeAway, 503, "The database does not answer",
			"Try again soon: the daemon recovers when the database is back. A request in progress may have been " +
				"stored: send it again with the same Idempotency-Key.", "2"},
		{codeSecrets, 503, "The secret cannot be encrypted",
			"recurgentd doctor says what is wrong with --secrets-key-file; nothing was kept.", ""},
		{codeIssuer, 503, "The token cannot be checked now",
			"Try again after Retry-After; tokens of the daemon's file, and those signed with a known key, still work.", "5"},
		{codeMoved, 503, "The session is moving to another replica", "Nothing of the request was kept; send it again.",
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
