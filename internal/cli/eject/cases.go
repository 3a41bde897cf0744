package eject

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/cli/eject/local"
	"github.com/recurgentd/recurgentd/internal/cli/examplefile"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// recordedFile is recorded.json: what is replayed in tests.
type recordedFile struct {
	Effects  map[string]json.RawMessage `json:"effects,omitempty"`  // of examples, by id
	LeaveOut []string                   `json:"left_out,omitempty"` // ids of examples that are no tests here
	Calls    []recordedCall             `json:"calls,omitempty"`
}

func (f *recordedFile) empty() bool { return len(f.Effects)+len(f.LeaveOut)+len(f.Calls) == 0 }

type recordedCall struct {
	ID      string            `json:"id"`
	Args    []json.RawMessage `json:"args"`
	Kwargs  json.RawMessage   `json:"kwargs"`
	Context json.RawMessage   `json:"context,omitempty"`
	Expect  agent.Expectation `json:"expect"`
	Effects json.RawMessage   `json:"effects,omitempty"`
}

// cases makes the files of a method's evidence: examples.json, a file of recurgentd tools examples, and recorded.json. What would show a
// secret, or cannot be replayed, is left out.
func (x *Program) cases(rules *mask.Rules) (examplefile.Document, *recordedFile, []LeftOut) {
	var left []LeftOut
	leave := func(id, reason string) {
		left = append(left, LeftOut{x.Role, x.Method, id, reason})
	}
	examples := examplefile.Document{Role: x.Role, Method: x.Method, Examples: []examplefile.Entry{}}
	recorded := &recordedFile{Effects: map[string]json.RawMessage{}}
	for _, e := range x.Examples {
		if secret(rules, append([]json.RawMessage{e.Kwargs, e.Context, e.Expect.Value}, e.Args...)...) {
			leave(e.ID, secretReason)
			continue
		}
		effects, _, reason := replayable(x.Effects[e.ID], rules)
		switch {
		case reason != "":
			leave(e.ID, reason)
			recorded.LeaveOut = append(recorded.LeaveOut, e.ID)
		case e.Expect.Schema != nil:
			leave(e.ID, "it demands a JSON Schema, which the tests of the module do not check")
			recorded.LeaveOut = append(recorded.LeaveOut, e.ID)
		case effects != nil:
			recorded.Effects[e.ID] = effects
		}
		examples.Examples = append(examples.Examples, examplefile.EntryOf(e))
	}
	for _, f := range x.Fixtures {
		effects, memory, reason := replayable(f.Effects, rules)
		if memory == nil {
			memory = f.Context
		}
		if secret(rules, append([]json.RawMessage{f.Kwargs, memory, f.Value}, f.Args...)...) {
			reason = secretReason
		}
		if reason != "" {
			leave(f.CallID, reason)
			continue
		}
		recorded.Calls = append(recorded.Calls, recordedCall{f.CallID, f.Args, f.Kwargs, memory, agent.Expectation{Value: f.Value}, effects})
	}
	return examples, recorded, left
}

const secretReason = "it holds a masked or secret value"

// secret reports whether one of the values holds a masked or secret value.
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

// effects is the part of a journal of recorded effects that is read here.
type effects struct {
	Now          *time.Time      `json:"now"`
	Seed         string          `json:"seed"`
	Clock        uint64          `json:"clock"`
	Randomness   uint64          `json:"chance"`
	Asks         []ask           `json:"asks"`
	Context      json.RawMessage `json:"context"`
	InputHistory json.RawMessage `json:"input_history"`
}

type ask struct {
	Op     string          `json:"op"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result,omitempty"`
	Digest string          `json:"digest,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
	Same   bool            `json:"same,omitempty"`
}

// replayable returns what of recorded effects a test replays, nil for nothing, and the memory that the call was given; or the reason why it
// cannot be replayed in plain Go.
func replayable(raw json.RawMessage, rules *mask.Rules) (tape, memory json.RawMessage, reason string) {
	if raw == nil {
		return nil, nil, ""
	}
	var all effects
	if json.Unmarshal(raw, &all) != nil {
		return nil, nil, "its recorded effects are not readable"
	}
	switch {
	case all.Now != nil || all.Clock > 0:
		return nil, nil, "it reads the clock"
	case all.Seed != "" || all.Randomness > 0:
		return nil, nil, "it uses randomness"
	case all.InputHistory != nil:
		return nil, nil, "it was given a history"
	}
	for i := range all.Asks {
		if reason := all.Asks[i].prepare(rules); reason != "" {
			return nil, nil, reason
		}
	}
	if len(all.Asks) == 0 {
		return nil, all.Context, ""
	}
	return agent.Encoded(struct {
		Asks []ask `json:"asks"`
	}{all.Asks}), all.Context, ""
}

// prepare removes the headers of a fetch that may hold secrets, and returns the reason where the answer cannot be kept.
func (a *ask) prepare(rules *mask.Rules) (reason string) {
	if a.Digest != "" {
		return "it reads more of the history than was recorded"
	}
	if reason := a.file(); reason != "" {
		return reason
	}
	if a.Op == "fetch" {
		var q recurgent.Request
		if json.Unmarshal(a.Params, &q) != nil {
			return "its recorded effects are not readable"
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
		}
	}
	if secret(rules, a.Params, a.Result) {
		return secretReason
	}
	return ""
}

// file returns the reason why a file that was read or fetched cannot be replayed in plain Go.
func (a *ask) file() (reason string) {
	switch {
	case a.Error != nil:
	case a.Op == "open":
		return "it reads a file, which is not part of the module"
	case a.Op == "fetch_file":
		var f struct {
			MediaType string `json:"media_type"`
			Body      string `json:"body"`
			Raw       []byte `json:"raw"`
			LeftOut   bool   `json:"left_out"`
		}
		if json.Unmarshal(a.Result, &f) != nil {
			return "its recorded effects are not readable"
		}
		if f.LeftOut {
			return "it fetches a file that was too large to be recorded"
		}
		text := append([]byte(f.Body), f.Raw...) // one of them is empty
		if name, err := charsets.Guess(bytes.NewReader(text), f.MediaType); err == nil && name != "" && name != local.Charset(text) {
			return "it fetches text in " + name + ", which the module does not read"
		}
	}
	return ""
}
