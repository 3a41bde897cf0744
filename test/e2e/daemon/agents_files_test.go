package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progCopies reads the file that it is given, also within another value, makes one of its text, and returns what it was
// given.
var progCopiesWithin = rig.Program(`	given := call.Arg(0, "doc")
	ref := given
	if within, ok := given.(map[string]any)["within"].([]any); ok {
		ref = within[0]
	}
	in, err := call.Open(ref)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	out, err := call.Create("copy.txt", "text/plain")
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(text); err != nil {
		return nil, err
	}
	return map[string]any{"given": given, "text": string(text), "made": out.Ref()}, nil`, "io")

// Files pass through function tools and MCP as references: what a client gives reaches the program as it is, and what a
// program makes can be downloaded.
func TestFilesOfFunctionTools(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"copier.copy": {progCopiesWithin}}))
	r := d.Send(http.MethodPost, "/v1/files", []byte("a text"), map[string]string{"Content-Type": "text/plain"})
	if r.Status != http.StatusCreated {
		t.Fatalf("upload: %d %s", r.Status, r.Body)
	}
	ref := object{"$file": r.Object(t)["id"]}
	if got := d.Call(d.Session("copier"), "copy", ref); !got.Outcome.OK {
		t.Fatalf("the first call: %+v", got.Outcome)
	}
	check := func(what string, value any, given object) {
		t.Helper()
		v, _ := value.(object)
		made, _ := v["made"].(object)
		id, _ := made["$file"].(string)
		if !rig.Equal(given, v["given"]) || v["text"] != "a text" || !strings.HasPrefix(id, "file_") || len(made) != 1 {
			t.Errorf("%s: got %v", what, value)
		}
		if r := d.Send(http.MethodGet, "/v1/files/"+id+"/content", nil, nil); string(r.Body) != "a text" {
			t.Errorf("%s: what it made: %d %s", what, r.Status, r.Body)
		}
	}
	parameters := d.Get("/v1/tools?format=openai&after=find_tools")["tools"].([]any)[0].(object)["function"].(object)
	named := func(given object) object {
		if properties, _ := parameters["parameters"].(object)["properties"].(object); properties["args"] != nil {
			return object{"args": []any{given}}
		}
		return object{"doc": given}
	}
	a := overHTTP(t, d, "")
	for _, given := range []object{ref, {"within": []any{ref}, "more": 1}} {
		check("function", function(d, "copier__copy", object{"arguments": named(given)}).Outcome.Value, given)
		check("function, as a text", function(d, "copier__copy",
			object{"arguments": string(rig.Encode(t, named(given)))}).Outcome.Value, given)
		check("MCP", a.call("copier__copy", named(given), nil).outcome["value"], given)
	}
	gone := object{"$file": "file_00000000000000000000000000"}
	if got := function(d, "copier__copy",
		object{"arguments": named(gone)}); got.Outcome.OK || got.Outcome.ErrorType != "file_not_found" {
		t.Errorf("a file that is gone: %+v", got.Outcome)
	}
	a.failure(a.call("copier__copy", named(gone), nil), "file_not_found")
}
