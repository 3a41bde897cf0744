package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
)

func loadDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := apitest.Load() // examples included
	if err != nil {
		t.Fatalf("api/openapi.yaml: %v", err)
	}
	return doc
}

func TestRoutesAndDocumentAgree(t *testing.T) {
	t.Parallel()
	var served, described []string
	err := chi.Walk(newTable(t).router, func(method, route string, _ http.Handler,
		_ ...func(http.Handler) http.Handler) error {
		served = append(served, method+" "+route)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range loadDocument(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	sort.Strings(served)
	sort.Strings(described)
	for _, r := range served {
		if r != "GET /ui/" && !slices.Contains(described, r) { // which is described at /ui
			t.Errorf("%s is served but not described", r)
		}
	}
	for _, r := range described {
		if !slices.Contains(served, r) {
			t.Errorf("%s is described but not served", r)
		}
	}
}

// The document lists the header with the id of the audit entry for exactly the operations that write one.
func TestAuditIdsAreDescribed(t *testing.T) {
	t.Parallel()
	rows := newTable(t).rows
	for _, item := range loadDocument(t).Paths.Map() {
		for _, op := range item.Operations() {
			for code, r := range op.Responses.Map() {
				if described := r.Value.Headers[headerAuditID] != nil; described != (rows[op.OperationID].leaves && code[0] == '2') {
					t.Errorf("%s %s: that the header %s is described is %v", op.OperationID, code, headerAuditID,
						described)
				}
			}
		}
	}
}

func TestOperationsAreDescribedInFull(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for path, item := range loadDocument(t).Paths.Map() {
		for method, op := range item.Operations() {
			at := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s: operationId %q is empty or there twice", at, op.OperationID)
			}
			ids[op.OperationID] = true
			if len(op.Tags) != 1 || op.Summary == "" || op.Description == "" {
				t.Errorf("%s needs one tag, a summary and a description", at)
			}
			if op.Responses.Value("4XX") == nil || op.Responses.Default() == nil {
				t.Errorf("%s needs 4XX and default", at)
			}
			if op.RequestBody != nil {
				for media, content := range op.RequestBody.Value.Content {
					if len(content.Examples) == 0 {
						t.Errorf("%s: %s has no example", at, media)
					}
				}
			}
		}
	}
}

// Wire structs and document have the same members.
func TestSchemasAndStructsAgree(t *testing.T) {
	t.Parallel()
	doc := loadDocument(t)
	for name, v := range map[string]any{
		"Session": agent.Session{}, "Tool": operator.KnownTool{}, "LogEntry": agent.LogEntry{},
		"Policy": agent.Policy{}, "HistoryRecord": agent.Record{},
		"OutcomeSummary": agent.OutcomeSummary{}, "CallReply": runtime.Reply{}, "Program": runtime.Program{},
		"Selection": agent.Selection{}, "Usage": agent.Usage{},
		"Rejection": agent.Rejection{}, "AttemptFailure": agent.AttemptFailure{}, "AuditEntry": operator.AuditView{},
		"Artifact": artifactView{}, "Generation": generationView{}, "Scorecard": agent.Scorecard{},
		"ArtifactSummary": artifactSummary{}, "Contract": agent.Contract{}, "Version": operator.VersionInfo{},
		"Introspection": runtime.Introspection{},
		"PruneReport":   operator.PruneReport{}, "RestoreReply": operator.RestoreReport{},
		"OlderGeneration": operator.OlderGeneration{}, "RestoredGeneration": agent.Restored{}, "Problem": Problem{},
		"FieldError": FieldError{}, "Accepted": accepted{},
		"Why": why.Explanation{}, "WhySelection": why.Selection{},
	} {
		schema := doc.Components.Schemas[name]
		if schema == nil {
			t.Errorf("the document has no schema %s", name)
			continue
		}
		have := members(reflect.TypeOf(v))
		if name == "Generation" || name == "Artifact" || name == "Rejection" {
			have = slices.DeleteFunc(have, func(m string) bool {
				return slices.Contains([]string{"fixtures", "displaced", "examples", "verdicts", "failures", "answered",
					"drifts", "adoptions", "outlines", "hint", "last_failure_owner", "shapes_owner", "made_for",
					"confirmed", "breaks", "returned", "asked"}, m) || name == "Rejection" && m == "owner"
			}) // hidden
		}
		if name == "Tool" || name == "AuditEntry" { // replies to changes have more
			have = append(have, members(reflect.TypeFor[operator.BroughtBack]())...)
		}
		if name == "HistoryRecord" {
			have = append(have, "value_preview") // only on request
		}
		if name == "Tool" {
			have = slices.DeleteFunc(have, func(m string) bool { return m == "proposals" }) // shown in the inbox
		}
		for _, m := range have {
			if schema.Value.Properties[m] == nil {
				t.Errorf("%s: %s is served but not described", name, m)
			}
		}
		for m := range schema.Value.Properties {
			if !slices.Contains(have, m) {
				t.Errorf("%s: %s is described but never served", name, m)
			}
		}
	}
}

func members(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			e := f.Type
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			names = append(names, members(e)...)
		case f.IsExported() && tag != "-":
			names = append(names, tag)
		}
	}
	return names
}

func TestEveryProblemCodeIsDescribed(t *testing.T) {
	t.Parallel()
	var want []any
	for _, k := range problemKinds() {
		want = append(want, k.code)
		if k.title == "" || k.hint == "" || k.status < 400 {
			t.Errorf("problem %s needs a title, a hint and a status", k.code)
		}
	}
	got := loadDocument(t).Components.Schemas["Problem"].Value.Properties["code"].Value.Enum
	less := func(s []any) func(i, j int) bool {
		return func(i, j int) bool { return fmt.Sprint(s[i]) < fmt.Sprint(s[j]) }
	}
	sort.Slice(want, less(want))
	sort.Slice(got, less(got))
	if !reflect.DeepEqual(got, want) {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		t.Errorf("codes described: %s\ncodes in use: %s", g, w)
	}
}
