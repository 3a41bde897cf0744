package tools

import (
	"net/http"
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/prompt/prompttest"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 000:103: conversation_history is always an array, whatever is stored: for clients that read or patch the context, and
// for programs, which find the session's records there.
func TestSeed000Line103(t *testing.T) {
	t.Parallel()
	count := rig.Program("\tl, ok := call.Context[\"conversation_history\"].([]any)\n\treturn map[string]any{\"array\": ok, \"records\": len(l)}, nil")
	ranged := rig.Program("\tfor key, v := range call.Context {\n\t\tif list, ok := v.([]any); ok && key == \"conversation_history\" {\n\t\t\treturn len(list), nil\n\t\t}\n\t}\n\treturn -1, nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"assistant.count": {count}, "assistant.ranged": {ranged}}))
	s := d.Session("assistant")
	path := "/v1/sessions/" + s + "/context"
	for i, stored := range []string{`{}`, `{"conversation_history": "broken"}`, `{"conversation_history": {"a": 1}}`,
		`{"conversation_history": 5}`,
		`{"conversation_history": [1]}`, `{"conversation_history": null, "other": 1}`} { // by a merge patch
		patched := d.Send(http.MethodPatch, path, []byte(stored),
			map[string]string{"Content-Type": "application/merge-patch+json"})
		for _, shown := range []object{patched.Object(t), d.Get(path)} {
			if records, ok := shown["conversation_history"].([]any); patched.Status != http.StatusOK || !ok || len(records) != i {
				t.Errorf("after %s: status %d, %v", stored, patched.Status, shown)
			}
		}
		d.WantValue(d.Call(s, "count"), object{"array": true, "records": i}, "")
	}
	if got := d.Get(path); got["other"] != 1.0 {
		t.Errorf("the rest of the context is gone: %v", got)
	}
	got := d.Call(s, "ranged")
	d.WantValue(got, 6, "generated")
	if e := d.LogOf(got); e["history_access_detected"] != true || e["replayable"] != true {
		t.Errorf("the log: access %v, replayable %v", e["history_access_detected"], e["replayable"])
	}
	if r := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+got.CallID+"/replay",
		object{}).Object(t); r["equal"] != true {
		t.Errorf("replayed: %v", r)
	}
}

// 002:13-15, 24, 62: on cold calls and repairs the history input of a call is in the model request as 2N messages, user
// and assistant in turn, before the current request, which is the same as without a history. Without a history there
// are no such messages. A keyword argument that the signature declares as history is checked, and left out of the
// current request.
func TestSeed002Line13(t *testing.T) {
	t.Parallel()
	mayPanic := rig.Program("\tif call.Kwargs[\"question\"] == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn map[string]any{\"q\": call.Kwargs[\"question\"], \"turns\": len(call.InputHistory())}, nil")
	never := rig.Program("\treturn map[string]any{\"q\": call.Kwargs[\"question\"], \"turns\": len(call.InputHistory())}, nil")
	turn := func(q, a string) any { return object{"question": q, "answer": a, "password": "hush", "unknown": 1} }
	given := object{"messages": []any{turn("q1", "a1"), turn("q2", "a2"), object{"answer": "a3", "question": "q3"}}}
	want := [][2]string{{"user", "Question: q1\nPassword: [masked]"}, {"assistant", "Answer: a1"},
		{"user", "Question: q2\nPassword: [masked]"}, {"assistant", "Answer: a2"},
		{"user", "Question: q3"}, {"assistant", "Answer: a3"}}
	signature := object{"inputs": []any{object{"name": "question"}, object{"name": "password"},
		object{"name": "past", "type": "history"}}, "outputs": []any{object{"name": "answer"}}}
	current := map[string]string{} // the last message of the cold request, by how the history came
	for name, with := range map[string]func(body object){
		"none":     func(object) {},
		"null":     func(body object) { body["kwargs"].(object)["past"] = nil },
		"empty":    func(body object) { body["kwargs"].(object)["past"] = object{"messages": []any{}} },
		"history":  func(body object) { body["history"] = given },
		"argument": func(body object) { body["kwargs"].(object)["past"] = given },
	} {
		m := rig.NewModel(t, rig.Script{"qa.reply": {mayPanic, never}})
		d := rig.Start(t, m)
		s := d.Session("qa", object{"contract": object{"signature": signature}})
		ask := func(question string) object {
			body := object{"method": "reply", "kwargs": object{"question": question}}
			with(body)
			return body
		}
		turns := 0.0
		if name == "history" || name == "argument" {
			turns = 3
		}
		d.WantValue(d.Invoke(s, ask("fine")), object{"q": "fine", "turns": turns}, "generated")
		d.WantValue(d.Invoke(s, ask("bad")), object{"q": "bad", "turns": turns}, "repaired")
		for i, kind := range []string{"cold", "repair"} {
			got := rig.Messages(t, m, i)
			if got[0][0] != "system" || got[len(got)-1][0] != "user" {
				t.Fatalf("%s, %s: %v", name, kind, got)
			}
			between := got[1 : len(got)-1]
			if turns == 0 && len(between) != 0 || turns > 0 && !slices.Equal(want, between) {
				t.Errorf("%s, %s: between the system message and the request stand %q", name, kind, between)
			}
			if kind == "cold" {
				current[name] = got[len(got)-1][1]
			}
		}
		for code, bad := range map[string]any{"invalid_history_value": "x",
			"invalid_history_element": object{"messages": []any{turn("q", "a"), object{"question": "q"}}}} {
			r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls",
				rig.Encode(t, object{"method": "reply", "kwargs": object{"question": "fine", "past": bad}}), nil)
			p := r.Object(t)
			if r.Status != http.StatusUnprocessableEntity || p["code"] != code || code == "invalid_history_element" &&
				p["index"] != 1.0 {
				t.Errorf("%s: a bad argument: status %d, %v", name, r.Status, p)
			}
		}
	}
	for name, text := range current {
		if text != current["none"] {
			t.Errorf("with a history as %s the current request is\n%s\nand not\n%s", name, text, current["none"])
		}
	}
}

// 000:138, 254: every request has the block about the history, the first of a session too, and its count is that of the
// records which call.History() gives: without those of nested calls.
func TestSeed000Line138(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.parent": {rig.Program(
		"\treturn call.Tool(\"helper\").Call(\"one\").Value, nil")}, "helper.one": {rig.Program("\treturn 1, nil")},
		"assistant.count": {rig.Program("\treturn len(call.History()), nil")}})
	d := rig.Start(t, m)
	s := d.Session("assistant")
	records := func(question int) int {
		var messages []provider.Message
		for _, x := range rig.Messages(t, m, question) {
			messages = append(messages, provider.Message{Role: x[0], Content: x[1]})
		}
		block, err := prompttest.Check(messages)
		if err != nil {
			t.Error(err)
		}
		return block.Records
	}
	d.WantValue(d.Call(s, "parent"), 1, "generated")
	if n := records(0); n != 0 {
		t.Errorf("the first request counts %d records", n)
	}
	d.WantValue(d.Call(s, "count"), 1, "generated")
	if n, all := records(-1), len(d.History(s)); n != 1 || all != 3 {
		t.Errorf("the request counts %d records of %d", n, all)
	}
}

// 002:62: a history that is given by its position is checked and turned into messages as one that is given by its name,
// and the current request is the same as without it, whether the contract is the session's or the role's.
func TestSeed002Line62(t *testing.T) {
	t.Parallel()
	reply := rig.Program("\treturn map[string]any{\"q\": call.Arg(0, \"question\"), \"turns\": len(call.InputHistory())}, nil")
	signature := object{"inputs": []any{object{"name": "question"}, object{"name": "past", "type": "history"}},
		"outputs": []any{object{"name": "answer"}}}
	given := object{"messages": []any{object{"question": "q1", "answer": "a1"}}}
	for _, of := range []string{"session", "role"} {
		current := map[int]string{}
		for turns, args := range [][]any{{"fine"}, {"fine", given}} {
			m := rig.NewModel(t, rig.Script{"qa.reply": {reply}})
			d := rig.Start(t, m)
			terms := object{"contract": object{"signature": signature}}
			if of == "role" {
				d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/qa", object{"signature": signature})
				terms = object{}
			}
			s := d.Session("qa", terms)
			d.WantValue(d.Call(s, "reply", args...), object{"q": "fine", "turns": turns}, "generated")
			got := rig.Messages(t, m, 0)
			if between := got[1 : len(got)-1]; len(between) != 2*turns || turns > 0 &&
				(between[0] != [2]string{"user", "Question: q1"} || between[1] != [2]string{"assistant",
					"Answer: a1"}) {
				t.Errorf("%s, %d turns: between the system message and the request stand %q", of, turns, between)
			}
			current[turns] = got[len(got)-1][1]
			for code, bad := range map[string]any{"invalid_history_value": 5,
				"invalid_history_element": object{"messages": []any{7}}} {
				r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls",
					rig.Encode(t, object{"method": "reply", "args": []any{"fine", bad}}), nil)
				if p := r.Object(t); r.Status != http.StatusUnprocessableEntity || p["code"] != code {
					t.Errorf("%s: %v by position: status %d, %v", of, bad, r.Status, p)
				}
			}
		}
		if current[0] != current[1] {
			t.Errorf("%s: with a history the current request is\n%s\nand not\n%s", of, current[1], current[0])
		}
	}
}

// 000:66: the speaker of a tool is the same in all its nested calls: agent where nobody registered it, tool where a
// program or a person did.
func TestSeed000Line66(t *testing.T) {
	t.Parallel()
	asks := rig.Program("\tcall.Delegate(\"made\", recurgent.Contract{Purpose: \"numbers\"}).Call(\"one\")\n\tcall.Tool(\"found\").Call(\"one\")\n\tcall.Tool(\"given\").Call(\"one\")\n\treturn call.Args, nil")
	one := rig.Program("\treturn 1, nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"boss.asks": {asks}, "made.one": {one}, "found.one": {one},
		"given.one": {one}}))
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/given", object{"purpose": "numbers"})
	s := d.Session("boss")
	for range 3 {
		d.Call(s, "asks", 1)
	}
	speakers := map[string][]any{}
	for _, r := range d.History(s) {
		role := r["role"].(string)
		speakers[role] = append(speakers[role], r["speaker"])
	}
	for role, want := range map[string]string{"boss": "user", "made": "tool", "found": "agent", "given": "tool"} {
		if !rig.Equal([]any{want, want, want}, speakers[role]) {
			t.Errorf("%s: %v, want %s", role, speakers[role], want)
		}
	}
}
