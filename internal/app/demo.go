package app

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// demoRecording is what replay answers from when no recording is named: the recorded answers of a real model, and
// written ones for what README and docs show.
//
//go:embed demo.jsonl
var demoRecording []byte

// A DemoRole is a role of the demo recording, with the methods that it has programs for, in the order of the recording.
type DemoRole struct {
	Role    string
	Methods []string
}

// Demo returns the roles of the demo recording in its order. It parses the recording at each call.
func Demo() (roles []DemoRole) {
	lines := bufio.NewScanner(bytes.NewReader(demoRecording))
	lines.Buffer(nil, len(demoRecording)+1)
	for lines.Scan() {
		var l provider.Line
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Kind != provider.KindForge {
			continue
		}
		i := slices.IndexFunc(roles, func(r DemoRole) bool { return r.Role == l.Role })
		if i < 0 {
			i, roles = len(roles), append(roles, DemoRole{Role: l.Role})
		}
		roles[i].Methods = append(roles[i].Methods, l.Method)
	}
	return roles
}
