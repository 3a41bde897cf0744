package daemon

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progFirstLine answers with the first line of a file, and makes a file of it; end is what it puts behind, and it
// panics on an empty file unless empty says what to do.
func progFirstLine(end, empty string) string {
	return rig.Program(`	in, err := call.Open(call.Arg(0, "text"))
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		`+empty+`
	}
	f, err := call.Create("line.txt", "text/plain")
	if err != nil {
		return nil, err
	}
	fmt.Fprint(f, lines.Text()+"`+end+`")
	return map[string]any{"length": len(lines.Text()), "line": f.Ref()}, nil`, "bufio", "fmt")
}

// A repaired program must read the files of earlier calls, and make theirs, as its predecessor did; a file that is gone
// binds nobody.
func TestRepairsKeepWhatFilesShowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		deleted bool // the file of the earlier call
		first   string
		source  string // of the program that answers in the end
		models  int
	}{
		{"made differently", false, progFirstLine("!", `return "empty", nil`), "generated", 3},
		{"made the same", false, progFirstLine("", `return "empty", nil`), "repaired", 2},
		{"the file is gone", true, progFirstLine("!", `return "empty", nil`), "repaired", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"text.first": {progFirstLine("", `panic("no line")`), c.first,
				progFirstLine("", `return "empty", nil`)}})
			d := rig.Start(t, m)
			s := d.Session("text")
			f := upload(d, http.StatusCreated, "", "text/plain", "hello\nworld\n")
			got := d.Call(s, "first", ref(f))
			value, _ := got.Outcome.Value.(map[string]any)
			if made, _ := value["line"].(map[string]any); value["length"] != float64(5) ||
				string(content(d, made).Body) != "hello" {
				t.Fatalf("got %+v", got.Outcome)
			}
			if r := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+got.CallID+"/replay",
				nil).Object(t); r["equal"] != true {
				t.Errorf("replay: %v", r)
			}
			if c.deleted {
				d.Do(http.StatusNoContent, http.MethodDelete, "/v1/files/"+f["id"].(string), nil)
			}
			empty := d.Call(s, "first", ref(upload(d, http.StatusCreated, "", "text/plain", "")))
			d.WantValue(empty, "empty", c.source)
			if asked := len(m.Questions()); asked != c.models {
				t.Errorf("%d requests, want %d", asked, c.models)
			}
		})
	}
}
