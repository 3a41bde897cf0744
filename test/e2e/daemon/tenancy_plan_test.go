package daemon

import (
	"net/http"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A matrixRow says how the matrix asks for an operation. What stands in braces is filled in from a side.
type matrixRow struct {
	query, body, media, accept string
	status                     int // where its principal may; 0: the least 2xx or 3xx of the document
	// where what it names is in another namespace; 0: 404, or status where it names nothing
	elsewhere int
	fresh     func(*side) // makes what it uses up
}

// plan has the operations that are asked for with more than their path.
func plan() map[string]matrixRow {
	code := string(rig.MustJSON(rig.ProgGiven))
	archived := func(s *side) { // so that restore finds it
		s.w.send(s.t, http.MethodDelete, s.fill("/v1/tools/{old}"), "", s.token, nil)
	}
	return map[string]matrixRow{
		"createSession":             {body: `{"role": "{clerk}"}`, elsewhere: 201},
		"getProtectedResource":      {status: http.StatusNotFound}, // there is no issuer
		"getProtectedResourceOfMCP": {status: http.StatusNotFound},
		"deleteSession":             {fresh: (*side).session},
		"patchContext":              {body: `{"a": 1}`, media: "application/merge-patch+json"},
		"createCall":                {body: `{"method": "greet", "args": [1]}`},
		"callFunction":              {body: `{"arguments": {"args": [1]}}`},
		"mcp": {body: `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`,
			accept: "application/json, text/event-stream", elsewhere: 200},
		"listExamples":     {elsewhere: 200},
		"listArtifacts":    {elsewhere: 200},
		"getPatterns":      {elsewhere: 200},
		"deleteTool":       {elsewhere: 204},
		"deleteArtifact":   {elsewhere: 204},
		"putTool":          {body: `{"purpose": "another"}`, status: 200, elsewhere: 201},
		"putProgram":       {body: `{"code": ` + code + `}`, elsewhere: 200},
		"judgeCall":        {body: `{"verdict": "right"}`},
		"getVerdict":       {fresh: (*side).proposal},
		"dropVerdict":      {fresh: (*side).proposal},
		"acceptContract":   {fresh: (*side).wishes},
		"rejectContract":   {fresh: (*side).wishes},
		"acceptExample":    {fresh: (*side).proposal},
		"rejectExample":    {fresh: (*side).proposal},
		"putExamples":      {body: `{"examples": [{"args": [1], "expect": {"value": 1}}]}`, elsewhere: 200},
		"tryProgram":       {body: `{"args": [1], "fetch": "denied"}`},
		"putEffects":       {body: `{"hosts": ["*"]}`, elsewhere: 200},
		"prune":            {body: `{"stale_days": 1}`},
		"restore":          {body: `{"role": "{old}"}`, fresh: archived},
		"undo":             {fresh: (*side).entry},
		"simulatePolicy":   {body: `{"patch": {"approval_required": true}}`},
		"patchPolicy":      {body: `{"repair_enabled": false}`, media: "application/merge-patch+json"},
		"putConnection":    {body: `{"hosts": ["a.example.org"], "methods": ["GET"], "roles": ["*"], "auth": {"type": "bearer", "secret": "swordfish"}}`, elsewhere: 201},
		"deleteConnection": {fresh: (*side).connection},
		"predict":          {body: `{"signature": {"inputs": [{"name": "q"}], "outputs": [{"name": "a"}]}, "inputs": {"q": "x"}}`, elsewhere: 200},
		"putSignature":     {body: `{"inputs": [{"name": "q"}], "outputs": [{"name": "a"}]}`, elsewhere: 201},
		"deleteSignature":  {fresh: (*side).signature},
		"predictNamed":     {body: `{"inputs": {"q": "x"}}`},
		"uploadFile":       {body: "bytes", media: "text/plain"},
		"deleteFile":       {fresh: (*side).file},
		"home":             {accept: "text/html"},
		"getConsoleFile":   {status: 404}, // of another version
		"putNamespace":     {status: 200, fresh: (*side).spare},
		"deleteNamespace":  {fresh: (*side).spare},
		"getNamespace":     {fresh: (*side).spare},
	}
}
