// Package prompttest checks that every request for a program has what seed 000 requires: the guidance on history in the
// system message and, in the user message, the number of records and short summaries of the latest. The scripted models
// of tests pass every request through it.
package prompttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// guidance is what every system message says of history.
func guidance() []string {
	return []string{"The conversation history is available as structured array records: call.History().",
		"Prefer direct filtering and querying of the records", "over speculative abstraction",
		"Do not assume that optional fields exist"}
}

// Reminder is what every user message of a session says.
const Reminder = "Full history at run time: call.History()"

// maxBlock bounds the history block of a user message, in bytes, whatever the length of the history.
const maxBlock = 4 << 10

var block = regexp.MustCompile(`(?s)<conversation_history>\nrecords: (\d+)\n(.*?)` + regexp.QuoteMeta(Reminder) +
	`\n</conversation_history>`)

// HistoryBlock is what the history block of a request says.
type HistoryBlock struct {
	Records   int              // how many there are
	Summaries []map[string]any // at most 3, the latest last
}

// Check returns what the messages say about the history, or what they lack.
func Check(messages []provider.Message) (HistoryBlock, error) {
	var b HistoryBlock
	var system, user string
	for _, m := range messages {
		switch m.Role {
		case "system":
			system += m.Content
		case "user":
			// not what asks for another form of the answer
			if user == "" || strings.Contains(m.Content, "<conversation_history>") {
				user = m.Content
			}
		}
	}
	for _, line := range guidance() {
		if !strings.Contains(system, line) {
			return b, fmt.Errorf("the system message lacks %q", line)
		}
	}
	found := block.FindStringSubmatch(user) // the first: what strangers wrote behind it cannot stand in
	if found == nil {
		return b, fmt.Errorf("the user message has no block about the history:\n%.2000s", user)
	}
	if len(found[0]) > maxBlock {
		return b, fmt.Errorf("the history block has %d bytes, more than %d", len(found[0]), maxBlock)
	}
	var err error
	if b.Records, err = strconv.Atoi(found[1]); err != nil {
		return b, fmt.Errorf("count of records: %w", err)
	}
	for line := range strings.Lines(found[2]) {
		summary := map[string]any{}
		if err := json.Unmarshal([]byte(line), &summary); err != nil {
			return b, fmt.Errorf("summary %q: %w", line, err)
		}
		if err := checkSummary(summary); err != nil {
			return b, err
		}
		b.Summaries = append(b.Summaries, summary)
	}
	if n := len(b.Summaries); n > 3 || n > b.Records {
		return b, fmt.Errorf("%d summaries of %d records; at most 3 are wanted", n, b.Records)
	}
	return b, nil
}

// checkSummary refuses a summary that is more or less than one: no arguments, no values.
func checkSummary(summary map[string]any) error {
	known := []string{"call_id", "speaker", "method_name", "outcome_status", "error_type", "signature"}
	for _, k := range slices.Sorted(maps.Keys(summary)) {
		if _, text := summary[k].(string); !text || !slices.Contains(known, k) {
			return fmt.Errorf("a summary has %s: %v", k, summary[k])
		}
	}
	for _, k := range known[:4] {
		if summary[k] == nil {
			return fmt.Errorf("a summary lacks %s: %v", k, summary)
		}
	}
	if (summary["error_type"] != nil) != (summary["outcome_status"] == "error") {
		return fmt.Errorf("a summary's error_type does not fit its status: %v", summary)
	}
	return nil
}
