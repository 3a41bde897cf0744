package disk

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// decodePlainly decodes an entry with package json only.
func decodePlainly(text []byte) (*entry, error) {
	e := &entry{planned: &planned{}}
	return e, json.Unmarshal(text, e)
}

func creation(change func(*entry)) []byte {
	at := time.Date(2026, 11, 22, 21, 28, 42, 850686590, time.UTC)
	e := &entry{At: at.UnixMilli(), Session: "sess_1",
		Create: &created{Session: agent.Session{ID: "sess_1", Role: "a role", Owner: "local", CreatedAt: at,
			UpdatedAt: at, Revision: 1}}}
	change(e)
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return text
}

// Entries with the usual members are decoded by decodeCreation, and others by package json.
func TestDecodeCreation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		short  bool
		change func(*entry)
	}{
		"plain":     {true, func(*entry) {}},
		"debug":     {true, func(e *entry) { e.Create.Session.Debug = true }},
		"namespace": {true, func(e *entry) { e.NS = "team" }},
		"ephemeral": {true, func(e *entry) { e.Create.Session.Ephemeral = true }},
		"no owner":  {true, func(e *entry) { e.Create.Session.Owner = "" }},
		"other id":  {true, func(e *entry) { e.Create.Session.ID = "sess_2" }},
		"local": {true, func(e *entry) {
			e.Create.Session.CreatedAt = e.Create.Session.CreatedAt.In(time.FixedZone(
				"", 3600))
		}},
		"escapes":   {false, func(e *entry) { e.Create.Session.Role = "a\n\"b\"" }},
		"not ASCII": {false, func(e *entry) { e.Create.Session.Role = "Zürich" }},
		"model":     {false, func(e *entry) { e.Create.Session.Model = "m" }},
		"metadata":  {false, func(e *entry) { e.Create.Session.Metadata = map[string]string{"k": "v"} }},
		"contract":  {false, func(e *entry) { e.Create.Session.Contract = &agent.Contract{} }},
		"context": {false, func(e *entry) {
			e.Create.Context = map[string]json.RawMessage{"k": json.RawMessage(
				"1")}
		}},
		"unsure":   {false, func(e *entry) { e.Unsure = 7 }},
		"audit":    {false, func(e *entry) { e.Audit = &agent.AuditEntry{} }},
		"negative": {false, func(e *entry) { e.Create.Session.Revision = -1 }},
	} {
		text := creation(c.change)
		if short := decodeCreation(text) != nil; short != c.short {
			t.Errorf("%s: read by decodeCreation: %v, want %v: %s", name, short, c.short, text)
		}
		got, err := decodeEntry(text)
		want, wantErr := decodePlainly(text)
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v: got %+v, want %+v", name, err, wantErr, got, want)
		}
	}
}

// For every text that decodeCreation accepts, package json yields the same entry.
func FuzzDecodeCreation(f *testing.F) {
	for _, change := range []func(*entry){func(*entry) {}, func(e *entry) { e.NS = "team" },
		func(e *entry) { e.Create.Session.Debug, e.Create.Session.Ephemeral = true, true }} {
		f.Add(creation(change))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := decodeCreation(text)
		if got == nil {
			return
		}
		want, err := decodePlainly(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v, want %+v", err, got, want)
		}
	})
}

func BenchmarkDecodeCreation(b *testing.B) {
	text := creation(func(*entry) {})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodePlainly(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("short", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeEntry(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
