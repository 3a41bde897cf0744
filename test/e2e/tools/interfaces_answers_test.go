package tools

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

var (
	prompts = flag.String("prompts", "",
		"write the prompt of each task of testdata/tasks.json into this directory, as NN.txt")
	answer = flag.String("answer", "",
		"check this file, the answer to the prompt that -task names, as a scripted model's")
	which = flag.Int("task", 0, "number of the task, from 1")
)

// perform makes the task's calls and returns what is wrong with the answers. The program is forged on the first call.
func perform(d *rig.Daemon, k *rig.Task) (wrong []string) {
	s := d.Session(k.Role, map[string]any{"context": k.Context, "contract": k.Contract()})
	for i, c := range k.Calls {
		kwargs := c.Kwargs
		if i > 0 {
			kwargs = asDeclared(d, k, kwargs)
		}
		got := d.Invoke(s, map[string]any{"method": k.Method, "args": c.Args, "kwargs": kwargs})
		switch {
		case c.Error != "" && got.Outcome.ErrorType != c.Error:
			wrong = append(wrong, fmt.Sprintf("%s call %d: got %s %v, want the error %s", k.ID, i+1,
				got.Outcome.ErrorType, got.Outcome.Value, c.Error))
		case c.Error == "" && (!got.Outcome.OK || !rig.Equal(c.Expect, got.Outcome.Value)):
			wrong = append(wrong, fmt.Sprintf("%s call %d: got %v (%s: %s), want %v", k.ID, i+1, got.Outcome.Value,
				got.Outcome.ErrorType, got.Outcome.ErrorMessage, c.Expect))
		}
	}
	return wrong
}

// asDeclared gives keywords the names that the method's interface has, as a caller does who looks first: a name that it
// lacks becomes that of the parameter in the same place. Few purposes name their parameters.
func asDeclared(d *rig.Daemon, k *rig.Task, kwargs json.RawMessage) json.RawMessage {
	r := d.Send("GET", "/v1/tools/"+k.Role+"/methods/"+k.Method, nil, nil)
	if r.Status != http.StatusOK {
		return kwargs // no program was kept
	}
	seen := r.Object(d.T)
	shown, _ := seen["interface"].(map[string]any)
	// the program is for calls with the task's contract: its generation has the interface
	if history, _ := seen["history"].([]any); shown == nil && len(history) > 0 {
		newest, _ := history[0].(map[string]any)
		shown, _ = newest["interface"].(map[string]any)
	}
	parameters, _ := shown["parameters"].([]any)
	known := map[string]bool{}
	var names []string
	for _, p := range parameters {
		p := p.(map[string]any)
		names = append(names, p["name"].(string))
		known[p["name"].(string)] = true
		aliases, _ := p["aliases"].([]any)
		for _, a := range aliases {
			known[a.(string)] = true
		}
	}
	out := map[string]json.RawMessage{}
	for i, m := range members(kwargs) {
		if !known[m.name] && i < len(names) {
			m.name = names[i]
		}
		out[m.name] = m.value
	}
	text, _ := json.Marshal(out) // of JSON
	return text
}

type member struct {
	name  string
	value json.RawMessage
}

// members are those of an object in their order.
func members(object json.RawMessage) (list []member) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		var m member
		name, err := d.Token()
		if err != nil || d.Decode(&m.value) != nil {
			return list
		}
		m.name, _ = name.(string)
		list = append(list, m)
	}
	return list
}

// TestAnswers runs what a model wrote that saw nothing but the prompts of before and after the last rewriting of the
// prompt, and holds all programs to the answers that are right: the shorter prompt has lost none.
func TestAnswers(t *testing.T) {
	t.Parallel()
	list := rig.Tasks(t, "testdata/tasks.json")
	for _, prompt := range []string{"before", "after"} {
		archive, err := txtar.ParseFile("testdata/answers-" + prompt + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		if len(archive.Files) != len(list) {
			t.Fatalf("%d answers to %d tasks", len(archive.Files), len(list))
		}
		script := rig.Script{}
		for i, f := range archive.Files {
			script[list[i].Role+"."+list[i].Method] = []any{openaitest.Reply{Content: string(f.Data)}}
		}
		d := rig.Start(t, rig.NewModel(t, script))
		for i := range list {
			for _, w := range perform(d, &list[i]) {
				t.Errorf("%s: %s", prompt, w)
			}
		}
	}
}

// TestPrompts writes the prompts of the tasks as a model gets them, one file a task, where -prompts says so; it checks
// that there is one for each.
func TestPrompts(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.Program("\treturn nil, recurgent.Fail(\"not_today\", \"\")"))
	d := rig.Start(t, m)
	list := rig.Tasks(t, "testdata/tasks.json")
	for i := range list {
		before := len(m.Requests())
		perform(d, &list[i])
		all := m.Questions()
		if len(all) <= before || all[before].Method != list[i].Method {
			t.Fatalf("task %d was not asked for", i+1)
		}
		if *prompts != "" {
			writePrompt(t, filepath.Join(*prompts, fmt.Sprintf("%02d.txt", i+1)), all[before])
		}
	}
}

func writePrompt(t *testing.T, file string, q rig.Question) {
	t.Helper()
	rig.WriteAt(t, file, "==== system ====\n"+q.System+"\n==== user ====\n"+q.User+"\n")
}

// TestOneAnswer checks the answer that -answer names to the prompt of task -task: go test -run TestOneAnswer -task 7
// -answer FILE. The file is the whole reply of a model: text with a fenced block of Go, or the JSON arguments of
// submit_program.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	list := rig.Tasks(t, "testdata/tasks.json")
	if *answer == "" {
		*which = 1
	}
	k := list[*which-1]
	reply := openaitest.Reply{Code: rig.Program(
		"\tf, ok := call.Arg(0, \"fahrenheit\").(float64)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"fahrenheit must be a number\")\n\t}\n\treturn math.Round((f-32)*500/9) / 100, nil", "math")}
	if *answer != "" {
		text, err := os.ReadFile(*answer)
		if err != nil {
			t.Fatal(err)
		}
		reply = openaitest.Reply{Content: string(text)}
	}
	m := rig.NewModel(t, rig.Script{k.Role + "." + k.Method: {reply}})
	for _, w := range perform(rig.Start(t, m), &k) {
		t.Error(w)
	}
}
