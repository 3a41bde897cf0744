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

// A demand is what an operation asks of the principal: a scope, and that its subject belongs to it.
type demand struct {
	needs access.Scope
	about subject
}

// An operation is one row of the table of operations.
type operation struct {
	id string // operationId in api/openapi.yaml
	demand
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
func (t *table) add(id string, of demand, route string, h handler, traits ...trait) {
	method, pattern, _ := strings.Cut(route, " ")
	if _, twice := t.rows[id]; twice || id == "" || of.needs == 0 || of.about == 0 {
		t.err = fmt.Errorf("api: the operation %q of %s has no scope, no subject, or appears twice", id, route)
	}
	o := operation{id, of, method, pattern, slices.Contains(traits, audited)}
	t.rows[id] = o
	t.router.Method(method, pattern, t.s.route(o, t.s.owning(of.about, h), traits...))
}

// routes registers all operations, with the scope that each needs and the subject that it is about.
func (s *server) routes() *table {
	t := &table{s: s, router: chi.NewRouter(), rows: map[string]operation{}}
	t.router.Use(toMCP)
	t.router.Use(middleware.GetHead) // net/http omits the body of replies to HEAD
	// metrics need a pattern: one for all, since clients choose the paths
	unmatched := operation{demand: demand{needs: anyone}, method: "other", pattern: "unmatched"}
	t.router.NotFound(s.route(unmatched, s.noRoute))
	t.router.MethodNotAllowed(s.route(unmatched, s.noMethod))
	add := t.add

	add("createSession", demand{access.Call, ofPrincipal}, "POST /v1/sessions", s.createSession, jsonBody)
	add("listSessions", demand{access.Read, ofPrincipal}, "GET /v1/sessions", s.listSessions)
	add("getSession", demand{access.Read, ofSession}, "GET /v1/sessions/{id}", s.getSession)
	add("deleteSession", demand{access.Call, ofSession}, "DELETE /v1/sessions/{id}", s.deleteSession, audited)
	add("getContext", demand{access.Read, ofSession}, "GET /v1/sessions/{id}/context", s.getContext)
	add("patchContext", demand{access.Call, ofSession}, "PATCH /v1/sessions/{id}/context", s.patchContext, patchBody,
		audited)
	add("createCall", demand{access.Call, ofPrincipal}, "POST /v1/sessions/{id}/calls", s.postCall, jsonBody, calling)
	add("getHistory", demand{access.Read, ofSession}, "GET /v1/sessions/{id}/history", s.getHistory)
	add("getMethod", demand{access.Read, ofSession}, "GET /v1/sessions/{id}/methods/{method}", s.getResponds)
	add("callFunction", demand{access.Call, ofPrincipal}, "POST /v1/functions/{name}", s.postFunction, jsonBody,
		calling)
	add("mcp", demand{byMessage, ofPrincipal}, "POST "+mcpPath, s.postMCP, jsonBody, streaming, calling)

	add("listCalls", demand{access.Read, ofPrincipal}, "GET /v1/calls", s.listCalls)
	add("getCall", demand{access.Read, ofCall}, "GET /v1/calls/{call_id}", s.getCall)
	add("explainCall", demand{access.Read, ofCall}, "GET /v1/calls/{call_id}/why", s.explainCall)
	add("getCallEvents", demand{access.Read, ofCall}, "GET /v1/calls/{call_id}/events", s.callEvents, streaming)
	add("getEvents", demand{access.Read, ofPrincipal}, "GET /v1/events", s.events, streaming)
	add("cancelCall", demand{access.Call, ofCall}, "POST /v1/calls/{call_id}/cancel", s.cancelCall, optionalBody,
		audited)
	add("replayCall", demand{access.Call, ofCall}, "POST /v1/calls/{call_id}/replay", s.replayCall, optionalBody,
		calling)

	add("listTools", demand{access.Read, ofPrincipal}, "GET /v1/tools", s.listTools)
	add("getTool", demand{access.Read, ofPrincipal}, "GET /v1/tools/{role}", s.getTool)
	add("putTool", demand{access.Operate, ofNamespace}, "PUT /v1/tools/{role}", s.putTool, jsonBody, audited)
	add("deleteTool", demand{access.Operate, ofNamespace}, "DELETE /v1/tools/{role}", s.deleteTool, audited)
	add("acceptContract", demand{access.Operate, ofNamespace}, "POST /v1/tools/{role}/proposals/{id}/accept",
		s.decideContract(true),
		optionalBody, audited)
	add("rejectContract", demand{access.Operate, ofNamespace}, "POST /v1/tools/{role}/proposals/{id}/reject",
		s.decideContract(false),
		optionalBody, audited)
	add("listArtifacts", demand{access.Read, ofNamespace}, "GET /v1/tools/{role}/methods", s.listArtifacts)
	add("getArtifact", demand{access.Read, ofPrincipal}, "GET /v1/tools/{role}/methods/{method}", s.getArtifact)
	add("putProgram", demand{access.Operate, ofNamespace}, "PUT /v1/tools/{role}/methods/{method}", s.putProgram,
		jsonBody,
		audited)
	add("deleteArtifact", demand{access.Operate, ofNamespace}, "DELETE /v1/tools/{role}/methods/{method}",
		s.deleteArtifact,
		audited)
	add("listGenerations", demand{access.Read, ofPrincipal}, "GET /v1/tools/{role}/methods/{method}/generations",
		s.listGenerations)
	add("listFixtures", demand{access.Operate, ofNamespace}, "GET /v1/tools/{role}/methods/{method}/fixtures",
		s.listFixtures)
	// all have the same body and reply
	for _, action := range []string{"quarantine", "release", "regenerate", "promote", "rollback", "pin", "unpin",
		"approve"} {
		add(action+"Artifact", demand{access.Operate, ofNamespace}, "POST /v1/tools/{role}/methods/{method}/"+action,
			s.operate(action),
			optionalBody, audited)
	}

	add("judgeCall", demand{access.Call, ofCall}, "POST /v1/calls/{call_id}/verdict", s.postVerdict, jsonBody, audited)
	add("getVerdict", demand{access.Read, ofCall}, "GET /v1/calls/{call_id}/verdict", s.getVerdict)
	add("dropVerdict", demand{access.Call, ofCall}, "DELETE /v1/calls/{call_id}/verdict", s.deleteVerdict, audited)
	add("listExamples", demand{access.Read, ofPrincipal}, "GET /v1/tools/{role}/methods/{method}/examples",
		s.getExamples)
	add("putExamples", demand{access.Operate, ofNamespace}, "PUT /v1/tools/{role}/methods/{method}/examples",
		s.putExamples,
		jsonBody,
		audited)
	add("runExamples", demand{access.Operate, ofNamespace}, "POST /v1/tools/{role}/methods/{method}/examples/run",
		s.runExamples,
		optionalBody, calling)
	add("acceptExample", demand{access.Operate, ofNamespace},
		"POST /v1/tools/{role}/methods/{method}/examples/{id}/accept",
		s.decideExample(true), optionalBody, audited)
	add("rejectExample", demand{access.Operate, ofNamespace},
		"POST /v1/tools/{role}/methods/{method}/examples/{id}/reject",
		s.decideExample(false), optionalBody, audited)
	add("tryProgram", demand{access.Operate, ofNamespace}, "POST /v1/tools/{role}/methods/{method}/try", s.try,
		jsonBody,
		calling)
	add("getEffects", demand{access.Read, ofNamespace}, "GET /v1/tools/{role}/methods/{method}/effects", s.getEffects)
	add("putEffects", demand{access.Operate, ofNamespace}, "PUT /v1/tools/{role}/methods/{method}/effects",
		s.putEffects,
		jsonBody, audited)

	add("listInbox", demand{access.Read, ofPrincipal}, "GET /v1/inbox", s.listInbox)
	add("getInboxEvents", demand{access.Operate, ofNamespace}, "GET /v1/inbox/events", s.inboxEvents, streaming)
	add("simulatePolicy", demand{access.Read, ofPrincipal}, "POST /v1/policy/simulate", s.simulatePolicy, jsonBody)

	add("listStale", demand{access.Read, ofNamespace}, "GET /v1/maintenance/stale", s.getStale)
	add("prune", demand{access.Operate, ofNamespace}, "POST /v1/maintenance/prune", s.prune, jsonBody, audited)
	add("restore", demand{access.Operate, ofNamespace}, "POST /v1/maintenance/restore", s.restore, jsonBody, audited)
	add("listAudit", demand{access.Operate, ofNamespace}, "GET /v1/maintenance/audit", s.getAudit)
	add("getAuditEntry", demand{access.Operate, ofNamespace}, "GET /v1/maintenance/audit/{id}", s.getAuditEntry)
	add("undo", demand{access.Operate, ofNamespace}, "POST /v1/maintenance/audit/{id}/undo", s.undo, optionalBody,
		audited)
	add("exportStore", demand{access.Admin, ofNamespace}, "GET /v1/maintenance/export", s.export, streaming, audited)
	add("getPolicy", demand{access.Read, ofNamespace}, "GET /v1/policy", s.getPolicy)
	add("patchPolicy", demand{access.Operate, ofNamespace}, "PATCH /v1/policy", s.patchPolicy, patchBody, audited)

	add("listConnections", demand{access.Admin, ofNamespace}, "GET /v1/connections", s.listConnections)
	add("getConnection", demand{access.Admin, ofNamespace}, "GET /v1/connections/{name}", s.getConnection)
	add("putConnection", demand{access.Admin, ofNamespace}, "PUT /v1/connections/{name}", s.putConnection, jsonBody,
		audited)
	add("deleteConnection", demand{access.Admin, ofNamespace}, "DELETE /v1/connections/{name}", s.deleteConnection,
		audited)

	add("listRecommendations", demand{access.Read, ofPrincipal}, "GET /v1/recommendations", s.listRecommendations)
	add("applyRecommendation", demand{access.Operate, ofNamespace}, "POST /v1/recommendations/{id}/apply",
		s.decide(Advice.ApplyRecommendation), optionalBody, audited)
	add("dismissRecommendation", demand{access.Operate, ofNamespace}, "POST /v1/recommendations/{id}/dismiss",
		s.decide(Advice.DismissRecommendation), optionalBody, audited)
	add("getPatterns", demand{access.Read, ofPrincipal}, "GET /v1/patterns/{role}", s.getPatterns)
	add("getHistoryUsage", demand{access.Read, ofPrincipal}, "GET /v1/reports/history-usage", s.getHistoryUsage)
	add("getUsage", demand{access.Read, ofPrincipal}, "GET /v1/usage", s.getUsage)
	add("getTrends", demand{access.Read, ofPrincipal}, "GET /v1/reports/trends", s.getTrends)

	add("predict", demand{access.Call, ofPrincipal}, "POST /v1/predict", s.predict, jsonBody, calling)
	add("listSignatures", demand{access.Read, ofNamespace}, "GET /v1/signatures", s.listSignatures)
	add("getSignature", demand{access.Read, ofNamespace}, "GET /v1/signatures/{name}", s.getSignature)
	add("putSignature", demand{access.Operate, ofNamespace}, "PUT /v1/signatures/{name}", s.putSignature, jsonBody,
		audited)
	add("deleteSignature", demand{access.Operate, ofNamespace}, "DELETE /v1/signatures/{name}", s.deleteSignature,
		audited)
	add("predictNamed", demand{access.Call, ofPrincipal}, "POST /v1/signatures/{name}/predict", s.predict, jsonBody,
		calling)

	add("uploadFile", demand{access.Call, ofPrincipal}, "POST /v1/files", s.postFile, streaming)
	add("listFiles", demand{access.Read, ofPrincipal}, "GET /v1/files", s.listFiles)
	add("getFile", demand{access.Read, ofPrincipal}, "GET /v1/files/{id}", s.getFile)
	add("deleteFile", demand{access.Call, ofPrincipal}, "DELETE /v1/files/{id}", s.deleteFile, audited)
	add("getFileContent", demand{access.Read, ofPrincipal}, "GET /v1/files/{id}/content", s.getFileContent, streaming)

	add("listNamespaces", demand{access.Admin, ofDaemon}, "GET /v1/namespaces", s.listNamespaces)
	add("getNamespace", demand{access.Admin, ofDaemon}, "GET /v1/namespaces/{name}", s.getNamespace)
	add("putNamespace", demand{access.Admin, ofDaemon}, "PUT /v1/namespaces/{name}", s.putNamespace, audited)
	add("deleteNamespace", demand{access.Admin, ofDaemon}, "DELETE /v1/namespaces/{name}", s.deleteNamespace, audited)

	add("getMe", demand{anyToken, ofPrincipal}, "GET /v1/me", s.getMe)
	add("listReplicas", demand{access.Operate, ofDaemon}, "GET /v1/replicas", s.listReplicas)
	add("getSystem", demand{access.Admin, ofDaemon}, "GET /v1/system", s.getSystem)
	add("checkModel", demand{access.Operate, ofNamespace}, "POST /v1/system/model/check", s.checkModel, calling)
	add("getVersion", demand{access.Read, ofDaemon}, "GET /v1/version", s.getVersion)
	add("healthz", demand{anyone, ofDaemon}, "GET /healthz", s.healthz)
	add("readyz", demand{anyone, ofDaemon}, "GET /readyz", s.readyz)
	add("metrics", demand{s.metricsNeed(), ofDaemon}, "GET /metrics", s.metrics())
	add("openapi", demand{anyone, ofDaemon}, "GET /openapi.yaml", s.openAPI)
	add("getDocs", demand{anyone, ofDaemon}, "GET /docs", s.getDocs)
	add("getProblem", demand{anyone, ofDaemon}, "GET /problems/{code}", s.problemPage)
	add("getProtectedResource", demand{anyone, ofDaemon}, "GET "+protectedPath, s.getProtectedResource)
	add("getProtectedResourceOfMCP", demand{anyone, ofDaemon}, "GET "+protectedPath+mcpPath, s.getProtectedResource)
	add("home", demand{anyone, ofDaemon}, "GET /", s.home)
	add("enterConsole", demand{anyone, ofDaemon}, "GET /ui", s.toConsole)
	add("getConsole", demand{anyone, ofDaemon}, "GET /ui/", s.consolePage)
	add("getConsoleFile", demand{anyone, ofDaemon}, "GET /ui/{version}/{folder}/{file}", s.consoleFile)
	return t
}
