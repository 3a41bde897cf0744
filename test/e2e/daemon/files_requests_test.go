package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progSize returns a program that answers with the number of a file's bytes plus more. It begins with the line first.
func progSize(first string, more int) string {
	return rig.Program(first + fmt.Sprintf(`	data, err := call.ReadFile(call.Arg(0, "file"))
	if err != nil {
		return nil, err
	}
	return len(data) + %d, nil`, more))
}

// A model sees the files of a call when it writes the first program, repairs one, writes another one for a person,
// corrects one, and reviews one for a changed purpose.
func TestFilesInLaterRequests(t *testing.T) {
	t.Parallel()
	const text = "user;password\nann;geheim123\n"
	purpose := func(d *rig.Daemon, role, words string) {
		d.T.Helper()
		r := d.Send(http.MethodPut, "/v1/tools/"+role, rig.Encode(d.T, object{"purpose": words}), nil)
		if r.Status != http.StatusOK && r.Status != http.StatusCreated {
			d.T.Fatalf("PUT: %d %s", r.Status, r.Body)
		}
	}
	for role, c := range map[string]struct {
		first string
		more  int // what the second program adds
		kind  string
		asks  func(d *rig.Daemon, first rig.Reply, again func() rig.Reply)
	}{
		"repair": {progSize("\tif len(call.Args) > 0 {\n\t\tpanic(\"boom\")\n\t}\n", 0), 0, "repair",
			func(*rig.Daemon, rig.Reply, func() rig.Reply) {}}, // within the first call
		"regeneration": {progSize("", 0), 1, "forge", func(d *rig.Daemon, _ rig.Reply, again func() rig.Reply) {
			d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("regeneration", "size")+"/regenerate",
				object{"reason": "count what is written, too"})
			d.WantValue(again(), len(text)+1, "generated")
		}},
		"correction": {progSize("", 0), 1, "repair", func(d *rig.Daemon, first rig.Reply, _ func() rig.Reply) {
			said := d.Send(http.MethodPost, "/v1/calls/"+first.CallID+"/verdict",
				rig.Encode(d.T, object{"verdict": "wrong", "expected": len(text) + 1}),
				map[string]string{"Prefer": "wait=60"})
			if said.Status != http.StatusOK {
				d.T.Fatalf("the verdict: %d %s", said.Status, said.Body)
			}
		}},
		"recheck": {progSize("", 0), 1, "forge", func(d *rig.Daemon, _ rig.Reply, again func() rig.Reply) {
			purpose(d, "recheck", "the bytes of a file and one more")
			d.WantValue(again(), len(text)+1, "generated")
		}},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{role + ".size": {c.first, progSize("", c.more)}})
			d := rig.Start(t, m)
			purpose(d, role, "the bytes of a file")
			s := d.Session(role)
			again := func() rig.Reply {
				return d.Call(s, "size", uploaded(d, "people.csv", "text/csv", []byte(text)))
			}
			first := again()
			d.WantValue(first, len(text), "")
			c.asks(d, first, again)
			asked := m.Questions()
			if len(asked) != 2 || asked[1].Kind != c.kind {
				t.Fatalf("the model was asked %d times, at last for a %s", len(asked), asked[len(asked)-1].Kind)
			}
			for i, q := range asked {
				if !strings.Contains(q.User, "<files>\n") || !strings.Contains(q.User, `"people.csv", text/csv, `) ||
					!strings.Contains(q.User, "user;password\nann;[masked]\n") ||
					strings.Contains(q.User, "geheim123") {
					t.Errorf("request %d, a %s:\n%s", i+1, q.Kind, q.User)
				}
			}
		})
	}
}
