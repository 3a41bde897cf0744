package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/recurgentd/recurgentd/internal/access"
)

// Requirements of an operation that are not scopes of tokens.
const (
	anyone    access.Scope = 1 << 6 // not even a token
	byMessage access.Scope = 1 << 7 // any token; the handler checks the scope that the message needs
	anyToken  access.Scope = byMessage
)

// An operation is one row of the table of operations.
type operation struct {
	id              string // operationId in api/openapi.yaml
	needs           access.Scope
	about           subject
	method, pattern string
	leaves          bool // whether it writes an audit entry, whose id its reply carries
}

// A table registers the operations. Each must have a unique id, a scope and a subject; otherwise add sets err.
type table struct {
	s      *server
	router *chi.Mux
	rows   map[string]operation // by id
	err    error
}

// add registers an operation. It records a duplicate id, a missing scope or a missing subject in err, so that the
// daemon does not start.
func (t *table) add(id string, needs access.Scope, about subject, route string, h handler, traits ...trait) {
	method, pattern, _ := strings.Cut(route, " ")
	if _, twice := t.rows[id]; twice || id == "" || needs == 0 || about == 0 {
		t.err = fmt.Errorf("api: the operation %q of %s has no scope, no subject, or is there twice", id, route)
	}
	o := operation{id, needs, about, method, pattern, slices.Contains(traits, audited)}
	t.rows[id] = o
	t.router.Method(method, pattern, t.s.route(o, t.s.owning(about, h), traits...))
}

// routes registers all operations, with the scope that each needs and the subject that it is about.
func (s *server) routes() *table {
	t := &table{s: s, router: chi.NewRouter(), rows: map[string]operation{}}
	t.router.Use(middleware.GetHead) // net/http omits the body of replies to HEAD
	// metrics need a pattern: one for all, since clients choose the paths
	unmatched := operation{needs: anyone, method: "other", pattern: "unmatched"}
	t.router.NotFound(s.route(unmatched, s.noRoute))
	t.router.MethodNotAllowed(s.route(unmatched, s.noMethod))
	add := t.add

	add("createSession", access.Call, ofPrincipal, "POST /v1/sessions", s.createSession, jsonBody)
	add("listSessions", access.Read, ofPrincipal, "GET /v1/sessions", s.listSessions)
	add("getSession", access.Read, ofSession, "GET /v1/sessions/{id}", s.getSession)
	add("deleteSession", access.Call, ofSession, "DELETE /v1/sessions/{id}", s.deleteSession, audited)
	add("getContext", access.Read, ofSession, "GET /v1/sessions/{id}/context", s.getContext)
	add("patchContext", access.Call, ofSession, "PATCH /v1/sessions/{id}/context", s.patchContext, patchBody, audited)
	add("createCall", access.Call, ofPrincipal, "POST /v1/sessions/{id}/calls", s.postCall, jsonBody, calling)
	add("getHistory", access.Read, ofSession, "GET /v1/sessions/{id}/history", s.getHistory)
	add("getMethod", access.Read, ofSession, "GET /v1/sessions/{id}/methods/{method}", s.getResponds)
	add("callFunction", access.Call, ofPrincipal, "POST /v1/functions/{name}", s.postFunction, jsonBody, calling)
	add("mcp", byMessage, ofPrincipal, "POST "+mcpPath, s.postMCP, jsonBody, streaming, calling)

	add("listCalls", access.Read, ofPrincipal, "GET /v1/calls", s.listCalls)
	add("getCall", access.Read, ofCall, "GET /v1/calls/{call_id}", s.getCall)
	add("explainCall", access.Read, ofCall, "GET /v1/calls/{call_id}/why", s.explainCall)
	add("getCallEvents", access.Read, ofCall, "GET /v1/calls/{call_id}/events", s.callEvents, streaming)
	add("getEvents", access.Read, ofPrincipal, "GET /v1/events", s.events, streaming)
	add("cancelCall", access.Call, ofCall, "POST /v1/calls/{call_id}/cancel", s.cancelCall, optionalBody, audited)
	add("replayCall", access.Call, ofCall, "POST /v1/calls/{call_id}/replay", s.replayCall, optionalBody, calling)

	add("listTools", access.Read, ofPrincipal, "GET /v1/tools", s.listTools)
	add("getTool", access.Read, ofPrincipal, "GET /v1/tools/{role}", s.getTool)
	add("putTool", access.Operate, ofNamespace, "PUT /v1/tools/{role}", s.putTool, jsonBody, audited)
	add("deleteTool", access.Operate, ofNamespace, "DELETE /v1/tools/{role}", s.deleteTool, audited)
	add("acceptContract", access.Operate, ofNamespace, "POST /v1/tools/{role}/proposals/{id}/accept",
		s.decideContract(true),
		optionalBody, audited)
	add("rejectContract", access.Operate, ofNamespace, "POST /v1/tools/{role}/proposals/{id}/reject",
		s.decideContract(false),
		optionalBody, audited)
	add("listArtifacts", access.Read, ofNamespace, "GET /v1/tools/{role}/methods", s.listArtifacts)
	add("getArtifact", access.Read, ofPrincipal, "GET /v1/tools/{role}/methods/{method}", s.getArtifact)
	add("putProgram", access.Operate, ofNamespace, "PUT /v1/tools/{role}/methods/{method}", s.putProgram, jsonBody,
		audited)
	add("deleteArtifact", access.Operate, ofNamespace, "DELETE /v1/tools/{role}/methods/{method}", s.deleteArtifact,
		audited)
	add("listGenerations", access.Read, ofPrincipal, "GET /v1/tools/{role}/methods/{method}/generations",
		s.listGenerations)
	add("listFixtures", access.Operate, ofNamespace, "GET /v1/tools/{role}/methods/{method}/fixtures", s.listFixtures)
	// all have the same body and reply
	for _, action := range []string{"quarantine", "release", "regenerate", "promote", "rollback", "pin", "unpin",
		"approve"} {
		add(action+"Artifact", access.Operate, ofNamespace, "POST /v1/tools/{role}/methods/{method}/"+action,
			s.operate(action),
			optionalBody, audited)
	}

	add("judgeCall", access.Call, ofCall, "POST /v1/calls/{call_id}/verdict", s.postVerdict, jsonBody, audited)
	add("getVerdict", access.Read, ofCall, "GET /v1/calls/{call_id}/verdict", s.getVerdict)
	add("dropVerdict", access.Call, ofCall, "DELETE /v1/calls/{call_id}/verdict", s.deleteVerdict, audited)
	add("listExamples", access.Read, ofPrincipal, "GET /v1/tools/{role}/methods/{method}/examples", s.getExamples)
	add("putExamples", access.Operate, ofNamespace, "PUT /v1/tools/{role}/methods/{method}/examples", s.putExamples,
		jsonBody,
		audited)
	add("runExamples", access.Operate, ofNamespace, "POST /v1/tools/{role}/methods/{method}/examples/run",
		s.runExamples,
		optionalBody, calling)
	add("acceptExample", access.Operate, ofNamespace, "POST /v1/tools/{role}/methods/{method}/examples/{id}/accept",
		s.decideExample(true), optionalBody, audited)
	add("rejectExample", access.Operate, ofNamespace, "POST /v1/tools/{role}/methods/{method}/examples/{id}/reject",
		s.decideExample(false), optionalBody, audited)
	add("tryProgram", access.Operate, ofNamespace, "POST /v1/tools/{role}/methods/{method}/try", s.try, jsonBody,
		calling)
	add("getEffects", access.Read, ofNamespace, "GET /v1/tools/{role}/methods/{method}/effects", s.getEffects)
	add("putEffects", access.Operate, ofNamespace, "PUT /v1/tools/{role}/methods/{method}/effects", s.putEffects,
		jsonBody, audited)

	add("listInbox", access.Read, ofPrincipal, "GET /v1/inbox", s.listInbox)
	add("getInboxEvents", access.Operate, ofNamespace, "GET /v1/inbox/events", s.inboxEvents, streaming)
	add("simulatePolicy", access.Read, ofPrincipal, "POST /v1/policy/simulate", s.simulatePolicy, jsonBody)

	add("listStale", access.Read, ofNamespace, "GET /v1/maintenance/stale", s.getStale)
	add("prune", access.Operate, ofNamespace, "POST /v1/maintenance/prune", s.prune, jsonBody, audited)
	add("restore", access.Operate, ofNamespace, "POST /v1/maintenance/restore", s.restore, jsonBody, audited)
	add("listAudit", access.Operate, ofNamespace, "GET /v1/maintenance/audit", s.getAudit)
	add("getAuditEntry", access.Operate, ofNamespace, "GET /v1/maintenance/audit/{id}", s.getAuditEntry)
	add("undo", access.Operate, ofNamespace, "POST /v1/maintenance/audit/{id}/undo", s.undo, optionalBody, audited)
	add("exportStore", access.Admin, ofNamespace, "GET /v1/maintenance/export", s.export, streaming, audited)
	add("getPolicy", access.Read, ofNamespace, "GET /v1/policy", s.getPolicy)
	add("patchPolicy", access.Operate, ofNamespace, "PATCH /v1/policy", s.patchPolicy, patchBody, audited)

	add("listConnections", access.Admin, ofNamespace, "GET /v1/connections", s.listConnections)
	add("getConnection", access.Admin, ofNamespace, "GET /v1/connections/{name}", s.getConnection)
	add("putConnection", access.Admin, ofNamespace, "PUT /v1/connections/{name}", s.putConnection, jsonBody, audited)
	add("deleteConnection", access.Admin, ofNamespace, "DELETE /v1/connections/{name}", s.deleteConnection, audited)

	add("listRecommendations", access.Read, ofPrincipal, "GET /v1/recommendations", s.listRecommendations)
	add("applyRecommendation", access.Operate, ofNamespace, "POST /v1/recommendations/{id}/apply",
		s.decide(Advice.ApplyRecommendation), optionalBody, audited)
	add("dismissRecommendation", access.Operate, ofNamespace, "POST /v1/recommendations/{id}/dismiss",
		s.decide(Advice.DismissRecommendation), optionalBody, audited)
	add("getPatterns", access.Read, ofPrincipal, "GET /v1/patterns/{role}", s.getPatterns)
	add("getHistoryUsage", access.Read, ofPrincipal, "GET /v1/reports/history-usage", s.getHistoryUsage)
	add("getUsage", access.Read, ofPrincipal, "GET /v1/usage", s.getUsage)
	add("getTrends", access.Read, ofPrincipal, "GET /v1/reports/trends", s.getTrends)

	add("predict", access.Call, ofPrincipal, "POST /v1/predict", s.predict, jsonBody, calling)
	add("listSignatures", access.Read, ofNamespace, "GET /v1/signatures", s.listSignatures)
	add("getSignature", access.Read, ofNamespace, "GET /v1/signatures/{name}", s.getSignature)
	add("putSignature", access.Operate, ofNamespace, "PUT /v1/signatures/{name}", s.putSignature, jsonBody, audited)
	add("deleteSignature", access.Operate, ofNamespace, "DELETE /v1/signatures/{name}", s.deleteSignature, audited)
	add("predictNamed", access.Call, ofPrincipal, "POST /v1/signatures/{name}/predict", s.predict, jsonBody, calling)

	add("uploadFile", access.Call, ofPrincipal, "POST /v1/files", s.postFile, streaming)
	add("listFiles", access.Read, ofPrincipal, "GET /v1/files", s.listFiles)
	add("getFile", access.Read, ofPrincipal, "GET /v1/files/{id}", s.getFile)
	add("deleteFile", access.Call, ofPrincipal, "DELETE /v1/files/{id}", s.deleteFile, audited)
	add("getFileContent", access.Read, ofPrincipal, "GET /v1/files/{id}/content", s.getFileContent, streaming)

	add("listNamespaces", access.Admin, ofDaemon, "GET /v1/namespaces", s.listNamespaces)
	add("getNamespace", access.Admin, ofDaemon, "GET /v1/namespaces/{name}", s.getNamespace)
	add("putNamespace", access.Admin, ofDaemon, "PUT /v1/namespaces/{name}", s.putNamespace, audited)
	add("deleteNamespace", access.Admin, ofDaemon, "DELETE /v1/namespaces/{name}", s.deleteNamespace, audited)

	add("getMe", anyToken, ofPrincipal, "GET /v1/me", s.getMe)
	add("listReplicas", access.Operate, ofDaemon, "GET /v1/replicas", s.listReplicas)
	add("getSystem", access.Admin, ofDaemon, "GET /v1/system", s.getSystem)
	add("checkModel", access.Operate, ofNamespace, "POST /v1/system/model/check", s.checkModel, calling)
	add("getVersion", access.Read, ofDaemon, "GET /v1/version", s.getVersion)
	add("healthz", anyone, ofDaemon, "GET /healthz", s.healthz)
	add("readyz", anyone, ofDaemon, "GET /readyz", s.readyz)
	add("metrics", s.metricsNeed(), ofDaemon, "GET /metrics", s.metrics())
	add("openapi", anyone, ofDaemon, "GET /openapi.yaml", s.openAPI)
	add("getDocs", anyone, ofDaemon, "GET /docs", s.getDocs)
	add("getProblem", anyone, ofDaemon, "GET /problems/{code}", s.problemPage)
	add("getProtectedResource", anyone, ofDaemon, "GET "+protectedPath, s.getProtectedResource)
	add("getProtectedResourceOfMCP", anyone, ofDaemon, "GET "+protectedPath+mcpPath, s.getProtectedResource)
	add("home", anyone, ofDaemon, "GET /", s.home)
	add("enterConsole", anyone, ofDaemon, "GET /ui", s.toConsole)
	add("getConsole", anyone, ofDaemon, "GET /ui/", s.consolePage)
	add("getConsoleFile", anyone, ofDaemon, "GET /ui/{version}/{folder}/{file}", s.consoleFile)
	return t
}
