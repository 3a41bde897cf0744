package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// An unseenReply is a weak one that was written before anyone knew how it is corrected. Its second reply was written
// for the repair prompt that it led to.
type unseenReply struct {
	weakReply
	second   *openaitest.Reply
	leaveOut string // why it has no single reading; only wrong values count then
	wrong    bool   // the second reply is wrong as it stands
}

// readUnseen reads an archive with a directory for each task: task.json, the first reply and what it declared beside
// it, and second.go, when it was asked for. A task may have several replies instead; the one after each, in a circle,
// is its second. The file "leave_out NAME" says why that one has no single reading.
func readUnseen(t *testing.T, file, site string) (list []unseenReply) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var last *unseenReply
	for _, f := range archive.Files {
		name, f := path.Base(f.Name), txtar.File{Name: f.Name, Data: bytes.ReplaceAll(f.Data, []byte("SITE"),
			[]byte(site))}
		switch {
		case name == "task.json":
			list = append(list, unseenReply{})
			last = &list[len(list)-1]
			var head struct {
				LeaveOut string `json:"leave_out"`
			}
			if err = json.Unmarshal(f.Data, &last.task); err == nil {
				err = json.Unmarshal(f.Data, &head)
			}
			last.leaveOut = head.LeaveOut
		case name == "second.json":
			err = json.Unmarshal(f.Data, &last.second.Declared)
		case name == "second.go":
			reply := asWritten(f.Data)
			last.second = &reply
		case path.Ext(name) == ".json":
			err = json.Unmarshal(f.Data, &last.Declared)
		case strings.HasPrefix(name, "leave_out "):
			last.leaveOut = strings.TrimSpace(string(f.Data))
		default:
			if last.name != "" {
				list = append(list, unseenReply{weakReply: weakReply{task: last.task}})
				last = &list[len(list)-1]
				last.task.Role = strings.TrimSuffix(last.task.Role, fmt.Sprintf(" %d", len(list)-1))
			}
			last.name, last.Reply = name, asWritten(f.Data)
			last.task.ID = strings.TrimSuffix(f.Name, ".go")
			last.task.Role += fmt.Sprintf(" %d", len(list)) // no two tasks share one
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", file, f.Name, err)
		}
	}
	secondsInCircle(list)
	return list
}

// secondsInCircle gives each reply of a task that has several the one after it as its second.
func secondsInCircle(list []unseenReply) {
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && path.Dir(list[i+n].task.ID) == path.Dir(list[i].task.ID) {
			n++
		}
		for k := i; k < i+n && n > 1; k++ {
			next := &list[i+(k-i+1)%n]
			list[k].second, list[k].wrong = &next.Reply, next.leaveOut == ownFault
		}
		i += n
	}
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

// TestUnseenWeakReplies plays sets that were written before it was known how they are corrected. Their kinds are known
// to the rules by now; docs/models.md has the figures of the day on which each was written. No correction makes a wrong
// value. With -v it prints the figures, and what was asked.
func TestUnseenWeakReplies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a figure over two hundred programs: TestWeakReplies plays some, and the gate's TestFixKinds each kind")
	}
	for set, least := range map[string]struct{ once, twice int }{"first": {54, 63}, "second": {25, 29},
		"third": {50, 57}, "fourth": {24, 28}, "fifth": {28, 31}, "sixth": {31, 34},
		"seventh": {23, 28}, "eighth": {25, 27}, "ninth": {20, 26}} {
		t.Run(set, func(t *testing.T) {
			replies, once, twice, wrong := playUnseen(t, "testdata/weakunseen/"+set+".txtar")
			if wrong > 0 || once < least.once || twice < least.twice {
				t.Errorf("of %d replies %d are served at once, %d within two requests, and there are %d wrong values",
					replies, once, twice, wrong)
			}
		})
	}
}

// playUnseen plays the replies of an archive and checks every answer. It counts those that have a single reading, those
// of them that are served at once and within two requests, and the wrong values of all.
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
			if answered(b) && w.leaveOut != ownFault && (asked < 2 || !w.wrong) {
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
	t.Logf("%s: %d replies: %d served at once, %d within two requests, %d wrong values", file, replies, once, twice,
		wrong)
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
