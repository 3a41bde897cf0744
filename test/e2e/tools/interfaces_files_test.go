package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const countsLines = `	ref := call.Arg(0, "list")
	if ref == nil {
		return nil, recurgent.Fail("invalid_input", "a list is needed")
	}
	r, err := call.OpenText(ref)
	if err != nil {
		return nil, err
	}
	n := 0
	for s := bufio.NewScanner(r); s.Scan(); {
		n++
	}
	return n, nil`

// A parameter that takes a file says so, whether it was declared or read off the program: to people, to models and to
// the clients of function tools, for whom it is an object with the reference.
func TestFilesAreParameters(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"lists.count": {rig.Program(countsLines)}}))
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("lists", "declared"),
		map[string]any{"reason": "ours", "code": rig.Program(countsLines),
			"parameters": []any{map[string]any{"name": "list", "type": "file", "required": true}}})
	file := d.Send(http.MethodPost, "/v1/files?name=list.txt", []byte("one\ntwo\n"),
		map[string]string{"Content-Type": "text/plain"}).Object(t)
	s := d.Session("lists")
	for _, method := range []string{"count", "declared"} {
		if r := d.Call(s, method, map[string]any{"$file": file["id"]}); r.Outcome.Value != 2.0 {
			t.Errorf("%s: %+v", method, r.Outcome)
		}
		if got := signature(d.Artifact("lists", method)); !strings.HasPrefix(got, "list:file ") {
			t.Errorf("%s takes %s", method, got)
		}
		if r := d.Call(s, method, 5); r.Outcome.ErrorType != "invalid_input" {
			t.Errorf("%s of a number: %+v", method, r.Outcome)
		}
	}
	tools := string(d.Do(http.StatusOK, http.MethodGet, "/v1/tools?format=mcp", nil).Body)
	if !strings.Contains(tools, `"list":{`) || strings.Contains(tools, `"type":"file"`) ||
		!strings.Contains(tools, `$file`) {
		t.Errorf("clients of function tools are shown %s", tools)
	}
	d.Do(http.StatusOK, http.MethodGet, "/v1/tools?format=openai&strict=true", nil)
}
