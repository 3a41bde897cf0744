package examplefile

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Document is the content of an example file, for writing one.
type Document struct {
	Role     string  `json:"role"`
	Method   string  `json:"method"`
	Examples []Entry `json:"examples"` // not nil
}

// An Entry is an example without the fields that only the daemon knows.
type Entry struct {
	ID        string            `json:"id,omitempty"`
	Args      []json.RawMessage `json:"args"`
	Kwargs    json.RawMessage   `json:"kwargs,omitempty"` // nil means none
	Context   json.RawMessage   `json:"context,omitempty"`
	Expect    agent.Expectation `json:"expect"`
	Tolerance *float64          `json:"tolerance,omitempty"`
	Note      string            `json:"note,omitempty"`
}

// EntryOf returns the entry for an example.
func EntryOf(x agent.Example) Entry {
	if string(x.Kwargs) == "{}" {
		x.Kwargs = nil
	}
	return Entry{x.ID, x.Args, x.Kwargs, x.Context, x.Expect, x.Tolerance, x.Note}
}
