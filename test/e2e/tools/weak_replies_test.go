package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/internal/sampled"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

var weak = flag.String("weak", "testdata/weak", "directory of the replies that TestWeakReplies plays: a .txtar a task")

// A weakReply is a program as a small model writes it, and the task that it is for.
type weakReply struct {
	task rig.Task
	name string
	openaitest.Reply
}

// readWeak reads the replies to one task. Each NAME.go is a program, or a whole answer with a fence or in JSON, and may
// have a NAME.json, what the model declared beside it.
func readWeak(t *testing.T, file, site string) []weakReply {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var task rig.Task
	var list []weakReply
	for _, f := range archive.Files {
		switch {
		case f.Name == "task.json":
			err = json.Unmarshal([]byte(strings.ReplaceAll(string(f.Data), "SITE", site)), &task)
		case filepath.Ext(f.Name) == ".json":
			err = json.Unmarshal(f.Data, &list[len(list)-1].Declared)
		default:
			list = append(list, weakReply{task, f.Name, asWritten(f.Data)})
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", file, f.Name, err)
		}
	}
	for i := range list {
		list[i].task.ID = strings.TrimSuffix(filepath.Base(file), ".txtar") + " " + list[i].name
		list[i].task.Role += fmt.Sprintf(" %d", i+1)
	}
	return list
}

// statusPages is a site with the documents that tasks fetch.
func statusPages(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"status": %q}`, strings.TrimPrefix(r.URL.Path, "/"))
	}))
	t.Cleanup(s.Close)
	return s
}

// answered reports whether a complaint is about a value, not about a failure.
func answered(complaint string) bool {
	if strings.Contains(complaint, "want the error") {
		return strings.Contains(complaint, "got  ")
	}
	return !strings.Contains(complaint, "got <nil> (") || strings.Contains(complaint, "(: )")
}

// TestWeakReplies plays what small models write: some of it in short runs. None is wrong; of all 60 % are served at
// once, and 85 % within two requests. With -v it prints the figures.
func TestWeakReplies(t *testing.T) {
	t.Parallel()
	replies, once, twice, wrong := playWeak(t, *weak)
	if wrong > 0 || once == 0 || !testing.Short() && (100*once < 60*replies || 100*twice < 85*replies) {
		t.Error("too few are served, or some with a wrong value")
	}
}

// TestMoreWeakReplies plays three sets that were written without knowledge of what is corrected, each later than the
// rules that came of the set before.
func TestMoreWeakReplies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("TestWeakReplies plays the usual ones")
	}
	var replies, once, twice int
	for _, set := range []string{"first", "second", "third"} {
		n, o, w, wrong := playWeak(t, filepath.Join("testdata/weakmore", set))
		if replies, once, twice = replies+n, once+o, twice+w; wrong > 0 {
			t.Errorf("%s: %d wrong values", set, wrong)
		}
	}
	if 100*once < 60*replies || 100*twice < 80*replies {
		t.Errorf("of %d replies %d are served at once, %d within two requests", replies, once, twice)
	}
}

// playWeak plays the replies of a directory, each followed by another one's reply to the same task, and checks every
// answer. It counts replies, those that are served at once and within two requests, and wrong values.
func playWeak(t *testing.T, dir string) (replies, once, twice, wrong int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no replies", err)
	}
	site := statusPages(t)
	var all []weakReply
	script := rig.Script{}
	for _, file := range files {
		list := readWeak(t, file, site.URL)
		for i, w := range list {
			script[w.task.Role+"."+w.task.Method] = []any{w.Reply, list[(i+1)%len(list)].Reply}
		}
		all = append(all, list...)
	}
	m := rig.NewModel(t, script)
	d := rig.Start(t, m, "--fetch-allow", strings.TrimPrefix(site.URL, "http://"))
	all = sampled.Of(all, 5)
	for i := range all {
		task := &all[i].task
		bad := perform(d, task)
		asked := m.Count(task.Role, task.Method)
		if len(bad) == 0 {
			t.Logf("after %d requests: %s is served", asked, task.ID)
		}
		switch {
		case len(bad) == 0 && asked == 1:
			once++
		case len(bad) == 0 && asked == 2:
			twice++
		}
		for _, w := range bad {
			t.Logf("after %d requests: %s", asked, w)
			if answered(w) {
				wrong++
			}
		}
	}
	twice += once
	t.Logf("%s: %d replies: %d served at once, %d within two requests, %d wrong values", dir, len(all), once, twice,
		wrong)
	return len(all), once, twice, wrong
}
