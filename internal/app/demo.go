package app

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// demoRecording is the recording that replay uses if none is named. It contains recorded replies of a real model, and
// hand-written ones for the examples in the documentation.
//
//go:embed demo.jsonl
var demoRecording []byte

// A DemoRole is a role of the demo recording and its methods, in the order of the recording.
type DemoRole struct {
	Role    string
	Methods []string
}

// Demo returns the roles of the demo recording, in its order. Each call parses the recording.
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
