package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzRecord decodes arbitrary records. A record that decodes can be encoded, and decodes to the same record, including
// unknown keys.
func FuzzRecord(f *testing.F) {
	f.Add(`{"call_id":"c","seq":1,"timestamp":"2026-11-21T02:10:00.123Z","speaker":"user","role":"r","method_name":"m","args":[1e999,"\ud800","\u0000",9223372036854775808],"kwargs":{"k":"` + "\xff" + `"},"outcome_summary":{"status":"ok","ok":true,"error_type":null,"retriable":false,"value_class":"number"},"from_the_future":{"a":[1,2]}}`)
	f.Add(`{"args":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"kwargs":null}`)
	f.Add(`{"args":null,"kwargs":{},"CALL_ID":"x","Seq":2,"":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var r Record
		if json.Unmarshal([]byte(text), &r) != nil {
			return
		}
		once, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", text, err)
		}
		var again Record
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%s cannot be read again: %v", once, err)
		}
		twice, err := json.Marshal(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%s became %s, %v", once, twice, err)
		}
		if len(r.Extra) != len(again.Extra) || !reflect.DeepEqual(r.OutcomeSummary, again.OutcomeSummary) ||
			len(r.Args) != len(again.Args) {
			t.Fatalf("%+v became %+v", r, again)
		}
	})
}
