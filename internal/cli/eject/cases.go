package eject

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/cli/eject/local"
	"github.com/recurgentd/recurgentd/internal/cli/examplefile"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// recordedFile is the content of recorded.json: the data that tests replay.
type recordedFile struct {
	Effects  map[string]json.RawMessage `json:"effects,omitempty"`  // recorded effects of examples, by id
	Files    map[string]local.HeldFile  `json:"files,omitempty"`    // files that the cases read, by id
	LeaveOut []string                   `json:"left_out,omitempty"` // ids of examples that are not tests here
	Calls    []recordedCall             `json:"calls,omitempty"`
}

func (f *recordedFile) empty() bool {
	return len(f.Effects)+len(f.Files)+len(f.LeaveOut)+len(f.Calls) == 0
}

// recordedCall is a fixture in the form of a case.
type recordedCall struct {
	ID      string            `json:"id"`
	Args    []json.RawMessage `json:"args"`
	Kwargs  json.RawMessage   `json:"kwargs"`
	Context json.RawMessage   `json:"context,omitempty"`
	Expect  agent.Expectation `json:"expect"`
	Effects json.RawMessage   `json:"effects,omitempty"`
}

// cases returns the evidence of a method as files: examples.json, in the format of recurgentd tools examples, and
// recorded.json. It leaves out cases that contain a secret or cannot be replayed. contents holds the bytes of the files
// that the cases read, by path below the method's directory.
func (x *Program) cases(rules *mask.Rules) (examples examplefile.Document, recorded *recordedFile,
	contents map[string]string, left []LeftOut) {
	leave := func(id, reason string) {
		left = append(left, LeftOut{x.Role, x.Method, id, reason})
	}
	contents = map[string]string{}
	examples = examplefile.Document{Role: x.Role, Method: x.Method, Examples: []examplefile.Entry{}}
	recorded = &recordedFile{Effects: map[string]json.RawMessage{}, Files: map[string]local.HeldFile{}}
	for _, e := range x.Examples {
		if secret(rules, append([]json.RawMessage{e.Kwargs, e.Context, e.Expect.Value}, e.Args...)...) {
			leave(e.ID, secretReason)
			continue
		}
		p := x.replayable(x.Effects[e.ID], rules)
		if x.Effects[e.ID] == nil {
			p.reason = p.given(x, rules, append([]json.RawMessage{e.Kwargs}, e.Args...))
		}
		switch {
		case p.reason != "":
			leave(e.ID, p.reason)
			recorded.LeaveOut = append(recorded.LeaveOut, e.ID)
		case e.Expect.Schema != nil:
			leave(e.ID, "it demands a JSON Schema, which the tests of the module do not check")
			recorded.LeaveOut = append(recorded.LeaveOut, e.ID)
		default:
			if p.tape != nil {
				recorded.Effects[e.ID] = p.tape
			}
			x.carry(p.files, recorded, contents)
		}
		examples.Examples = append(examples.Examples, examplefile.EntryOf(e))
	}
	for _, f := range x.Fixtures {
		p := x.replayable(f.Effects, rules)
		if p.memory == nil {
			p.memory = f.Context
		}
		if secret(rules, append([]json.RawMessage{f.Kwargs, p.memory, f.Value}, f.Args...)...) {
			p.reason = secretReason
		}
		if p.reason != "" {
			leave(f.CallID, p.reason)
			continue
		}
		x.carry(p.files, recorded, contents)
		recorded.Calls = append(recorded.Calls, recordedCall{f.CallID, f.Args, agent.AsWritten(x.Code, f.Kwargs),
			p.memory, agent.Expectation{Value: f.Value}, p.tape})
	}
	return examples, recorded, contents, left
}

const secretReason = "it holds a masked or secret value"

// secret reports whether one of the values is, or contains, a masked or secret value.
func secret(rules *mask.Rules, values ...json.RawMessage) bool {
	for _, v := range values {
		if strings.Contains(string(v), mask.Masked) {
			return true
		}
		if _, masked := rules.JSON(v); masked {
			return true
		}
	}
	return false
}

// effects decodes the used part of a journal of recorded effects.
type effects struct {
	Now          *time.Time      `json:"now"`
	Seed         string          `json:"seed"`
	Clock        uint64          `json:"clock"`
	Randomness   uint64          `json:"chance"`
	Asks         []ask           `json:"asks"`
	Context      json.RawMessage `json:"context"`
	InputHistory json.RawMessage `json:"input_history"`
}

// ask is one recorded request of a program to its host, with the answer.
type ask struct {
	Op     string          `json:"op"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result,omitempty"`
	Digest string          `json:"digest,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
	Same   bool            `json:"same,omitempty"`
}

// A playback is the part of recorded effects that a test replays.
type playback struct {
	tape   json.RawMessage // nil if there is nothing to replay
	memory json.RawMessage // the context given to the call
	files  []string        // ids of the stored files that the call reads
	// reason explains why plain Go cannot replay the call; if it is set, nothing else is.
	reason string
}

// replayable returns the part of recorded effects that a test replays.
func (x *Program) replayable(raw json.RawMessage, rules *mask.Rules) playback {
	if raw == nil {
		return playback{}
	}
	var all effects
	if json.Unmarshal(raw, &all) != nil {
		return playback{reason: unreadable}
	}
	switch {
	case all.Now != nil || all.Clock > 0:
		return playback{reason: "it reads the clock"}
	case all.Seed != "" || all.Randomness > 0:
		return playback{reason: "it uses randomness"}
	case all.InputHistory != nil:
		return playback{reason: "it was given a history"}
	}
	p := playback{memory: all.Context}
	for i := range all.Asks {
		a := &all.Asks[i]
		reason := a.prepare(rules)
		if reason == "" {
			reason = cmp.Or(a.decodes(), p.reads(x, a, rules))
		}
		if reason != "" {
			return playback{reason: reason}
		}
	}
	if len(all.Asks) > 0 {
		p.tape = agent.Encoded(struct {
			Asks []ask `json:"asks"`
		}{all.Asks})
	}
	return p
}

const unreadable = "its recorded effects are not readable"

// prepare removes headers of a fetch that may contain secrets. It returns the reason if the answer cannot be kept,
// otherwise "".
func (a *ask) prepare(rules *mask.Rules) (reason string) {
	if a.Digest != "" {
		return "it reads more of the history than was recorded"
	}
	if a.Op == "fetch" {
		var q recurgent.Request
		if json.Unmarshal(a.Params, &q) != nil {
			return unreadable
		}
		q.Header = nil
		a.Params = agent.Encoded(q)
		var answer recurgent.Response
		if a.Result != nil && json.Unmarshal(a.Result, &answer) == nil {
			for name := range answer.Header {
				if strings.EqualFold(name, "Set-Cookie") {
					delete(answer.Header, name)
				}
			}
			a.Result = agent.Encoded(answer)
			if reason := searched(answer.Bytes(), rules); reason != "" {
				return reason
			}
		}
	}
	if secret(rules, a.Params, a.Result) {
		return secretReason
	}
	return ""
}
