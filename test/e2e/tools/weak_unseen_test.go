package tools

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// An unseenReply is a weak one that was written before anyone knew how it is corrected. Its second reply was written for the repair prompt that it led to.
type unseenReply struct {
	weakReply
	second   *openaitest.Reply
	leaveOut string // why it has no single reading; only wrong values count then
}

// readUnseen reads an archive with a directory for each task: task.json, the first reply and what it declared beside it, and second.go, when it was asked for.
func readUnseen(t *testing.T, file, site string) (list []unseenReply) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var last *unseenReply
	for _, f := range archive.Files {
		name := path.Base(f.Name)
		switch {
		case name == "task.json":
			list = append(list, unseenReply{})
			last = &list[len(list)-1]
			var head struct {
				LeaveOut string `json:"leave_out"`
			}
			text := []byte(strings.ReplaceAll(string(f.Data), "SITE", site))
			if err = json.Unmarshal(text, &last.task); err == nil {
				err = json.Unmarshal(text, &head)
			}
			last.leaveOut = head.LeaveOut
		case name == "second.json":
			err = json.Unmarshal(f.Data, &last.second.Declared)
		case name == "second.go":
			reply := asWritten(f.Data)
			last.second = &reply
		case path.Ext(name) == ".json":
			err = json.Unmarshal(f.Data, &last.Declared)
		default:
			last.name, last.Reply = name, asWritten(f.Data)
			last.task.ID = strings.TrimSuffix(f.Name, ".go")
			last.task.Role += fmt.Sprintf(" %d", len(list)) // no two tasks share one
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", file, f.Name, err)
		}
	}
	return list
}

// asWritten is a reply with this text: a program, or a whole answer with a fence or in JSON.
func asWritten(data []byte) openaitest.Reply {
	if text := string(data); strings.Contains(text, "```") || strings.HasPrefix(text, "{") {
		return openaitest.Reply{Content: text}
	}
	return openaitest.Code(string(data))
}

// ownFault is why a reply is left out whose text, read as it stands, computes another value than its task wants.
const ownFault = "it is wrong as it stands"

// TestUnseenWeakReplies plays sets that were written before it was known how they are corrected. The kinds of the first are known to the rules by now; of the second, which
// no rule was written for, the figures are those of docs/models.md. No correction makes a wrong value. With -v it prints the figures, and what was asked.
func TestUnseenWeakReplies(t *testing.T) {
	t.Parallel()
	for set, least := range map[string]struct{ once, twice int }{"first": {48, 61}, "second": {18, 28}} {
		replies, once, twice, wrong := playUnseen(t, "testdata/weakunseen/"+set+".txtar")
		if wrong > 0 || once < least.once || twice < least.twice {
			t.Errorf("%s: of %d replies %d are served at once, %d within two requests, and there are %d wrong values", set, replies, once, twice, wrong)
		}
	}
}

// playUnseen plays the replies of an archive and checks every answer. It counts those that have a single reading, those of them that are served at once and within
// two requests, and the wrong values of all.
func playUnseen(t *testing.T, file string) (replies, once, twice, wrong int) {
	t.Helper()
	site := statusPages(t)
	all := readUnseen(t, file, site.URL)
	script := rig.Script{}
	for _, w := range all {
		answers := []any{w.Reply}
		if w.second != nil {
			answers = append(answers, *w.second)
		}
		script[w.task.Role+"."+w.task.Method] = answers
	}
	m := rig.NewModel(t, script)
	d := rig.Start(t, m, "--fetch-allow", strings.TrimPrefix(site.URL, "http://"))
	for i := range all {
		w := &all[i]
		bad := perform(d, &w.task)
		asked := m.Count(w.task.Role, w.task.Method)
		t.Logf("%s: after %d requests: %q", w.task.ID, asked, bad)
		logRepair(t, m, w.task.Role)
		for _, b := range bad {
			if answered(b) && w.leaveOut != ownFault {
				wrong++
			}
		}
		if w.leaveOut != "" {
			continue
		}
		replies++
		if len(bad) == 0 && asked == 1 {
			once++
		}
		if len(bad) == 0 && asked <= 2 {
			twice++
		}
	}
	t.Logf("%s: %d replies: %d served at once, %d within two requests, %d wrong values", file, replies, once, twice, wrong)
	return replies, once, twice, wrong
}

// logRepair logs what the first request for a repair said of the failed program.
func logRepair(t *testing.T, m *rig.Model, role string) {
	t.Helper()
	for _, q := range m.Questions() {
		if q.Role == role && q.Kind == "repair" {
			_, said, _ := strings.Cut(q.User, "</failed_code>")
			said, _, _ = strings.Cut(said, "The call that needs")
			t.Log(said)
			return
		}
	}
}
