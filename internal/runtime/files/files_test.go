package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A store keeps its promises with large values moved to files.
func TestInsideIsAStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{Open: func(_ *testing.T, now func() time.Time) store.Store {
		return Inside(storetest.NewMemory(now))
	}})
}

func keeper(t *testing.T, change func(*Options, *agent.Policy)) (*Keeper, store.Namespace) {
	t.Helper()
	memory := storetest.NewMemory(time.Now)
	p := agent.DefaultPolicy()
	o := DefaultOptions()
	o.Store, o.Policy = memory, func() *agent.Policy { return &p }
	if change != nil {
		change(&o, &p)
	}
	k, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return k, storetest.Default(t, memory)
}

// A failed upload leaves nothing and releases its room.
func TestUploadsThatFail(t *testing.T) {
	t.Parallel()
	k, held := keeper(t, func(o *Options, p *agent.Policy) {
		o.MaxFile, o.MaxAll, p.Retention.SessionFileMiB = 1000,
			1500, 0
	})
	ctx := t.Context()
	broken := errors.New("cut")
	over := func(bound string) func(error) bool {
		return func(err error) bool {
			var e *LimitError
			return errors.As(err, &e) && e.Bound == bound
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		file agent.File
		body io.Reader
		want func(error) bool
	}{
		{"a body that breaks", ctx, agent.File{}, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)),
			is(broken)},
		{"too large", ctx, agent.File{}, strings.NewReader(strings.Repeat("x", 1001)), over(LimitFile)},
		{"announced too large", ctx, agent.File{Bytes: 1001}, strings.NewReader("x"), over(LimitFile)},
		{"of no session", ctx, agent.File{SessionID: "sess_none"}, strings.NewReader("x"), is(store.ErrNotFound)},
		{"given up", canceled, agent.File{}, strings.NewReader("x"), is(context.Canceled)},
		{"a bad type", ctx, agent.File{MediaType: "text"}, strings.NewReader("x"),
			func(err error) bool { var e *agent.InputError; return errors.As(err, &e) }},
	} {
		if _, err := k.Upload(c.ctx, c.file, c.body); !c.want(err) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	if _, all, _ := held.FileBytes(ctx, "", ""); all != 0 || len(k.room.taken) != 0 {
		t.Errorf("%d bytes are stored, %v taken", all, k.room.taken)
	}
}

// Concurrent uploads share the room and together stay within it.
func TestUploadsShareTheRoom(t *testing.T) {
	t.Parallel()
	k, held := keeper(t, func(o *Options, p *agent.Policy) {
		o.MaxFile, o.MaxAll, p.Retention.SessionFileMiB = 4<<20,
			10<<20, 0
	})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, err := k.Upload(context.Background(), agent.File{Owner: "ann"},
				strings.NewReader(strings.Repeat("x", 3<<20)))
			var full *storage.FullError
			if err != nil && (!errors.As(err, &full) || full.Share != storage.ShareDaemon ||
				full.Of != store.KindFiles) {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if _, all, _ := held.FileBytes(t.Context(), "ann", ""); all > 10<<20 || all == 0 || len(k.room.taken) != 0 {
		t.Errorf("%d bytes are stored, %v taken", all, k.room.taken)
	}
}

// A reference given by a client or a program stays a reference, whatever it names.
func TestReferencesOfOthersStay(t *testing.T) {
	t.Parallel()
	memory := storetest.NewMemory(time.Now)
	n := storetest.Default(t, Inside(memory))
	ctx := t.Context()
	if err := n.CreateSession(ctx, agent.Session{ID: "sess_1", Owner: "ann"}, nil); err != nil {
		t.Fatal(err)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", largeValue) + `"`)
	first := storetest.NewCommit("sess_1", "call_1", time.Now())
	first.Log.Args, first.Record.Args = []json.RawMessage{large}, []json.RawMessage{large}
	if err := n.CommitCall(ctx, first); err != nil {
		t.Fatal(err)
	}
	if string(first.Log.Args[0]) != string(large) || first.Record.Seq != 1 {
		t.Error("the commit was changed for its caller")
	}
	page, err := storetest.Default(t, memory).History(ctx, "sess_1", store.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var record agent.Record
	if err := json.Unmarshal(page.Records[0], &record); err != nil {
		t.Fatal(err)
	}
	part := record.Args[0] // of another call
	second := storetest.NewCommit("sess_1", "call_2", time.Now())
	second.Log.Args = []json.RawMessage{part, agent.FileRef("file_gone"),
		json.RawMessage(`{"$file":"part_gone","more":1}`)}
	second.Outcome.Value = agent.FileRef("file_gone")
	if err := n.CommitCall(ctx, second); err != nil {
		t.Fatal(err)
	}
	got, err := n.Call(ctx, "call_2")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range second.Log.Args {
		if string(got.Log.Args[i]) != string(want) {
			t.Errorf("argument %d: got %.80s, want %s", i, got.Log.Args[i], want)
		}
	}
	if got.Outcome == nil || string(got.Outcome.Value) != string(second.Outcome.Value) {
		t.Errorf("got %+v", got.Outcome)
	}
	if whole, err := n.Call(ctx, "call_1"); err != nil || string(whole.Log.Args[0]) != string(large) {
		t.Errorf("call_1: %v", err)
	}
}

// A value from a program or a client that looks like a part of a call opens nothing, stays unchanged, and is not
// treated as an expired part.
func TestForgedParts(t *testing.T) {
	t.Parallel()
	memory := storetest.NewMemory(time.Now)
	n := storetest.Default(t, Inside(memory))
	ctx := t.Context()
	for _, s := range []agent.Session{{ID: "sess_1", Owner: "ann"}, {ID: "sess_2", Owner: "bob"}} {
		if err := n.CreateSession(ctx, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	first := storetest.NewCommit("sess_1", "call_1", time.Now())
	first.Record.Args, first.Record.Kwargs = []json.RawMessage{},
		json.RawMessage(`{"text":"`+strings.Repeat("x", largeValue)+`"}`)
	first.Log.Args, first.Log.Kwargs = first.Record.Args, first.Record.Kwargs
	first.Log.ProgramArgs, first.Log.ProgramKwargs = []json.RawMessage{json.RawMessage(`"` + strings.Repeat("y",
		largeValue) + `"`)}, json.RawMessage(`{}`)
	if err := n.CommitCall(ctx, first); err != nil {
		t.Fatal(err)
	}
	got, err := n.Call(ctx, "call_1")
	if err != nil || got.Log.Args == nil || string(got.Log.Kwargs) != string(first.Log.Kwargs) ||
		string(got.Log.ProgramArgs[0]) != string(first.Log.ProgramArgs[0]) {
		t.Errorf("call_1: %v, arguments %v", err, got.Log.Args)
	}
	below, err := storetest.Default(t, memory).Call(ctx, "call_1")
	if err != nil || below.Log.Args == nil || len(below.Log.ProgramArgs[0]) > 100 || len(below.Log.Kwargs) > 100 {
		t.Fatalf("stored: %v, arguments %v", err, below.Log.Args)
	}
	part := below.Log.ProgramArgs[0] // of another owner
	policy := agent.DefaultPolicy()
	k, err := New(Options{Store: Inside(memory), Policy: func() *agent.Policy { return &policy }, Now: time.Now,
		MaxFile: 1, MaxAll: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := agent.FileRefs(part)[0]
	_, opened := k.OpenFile(ctx, "ann", id)
	_, again := k.OpenAgain(ctx, id)
	if err := errors.Join(opened, again); !errors.Is(opened, store.ErrNotFound) ||
		!errors.Is(again, store.ErrNotFound) || !errors.Is(k.DeleteFile(ctx, "ann", id, "ann"), store.ErrNotFound) {
		t.Errorf("a part is a file: %v", err)
	}
	for _, forged := range []json.RawMessage{part, json.RawMessage(`{"$file":"part_gone"}`)} {
		c := storetest.NewCommit("sess_2", ids.New("call"), time.Now())
		c.Log.Args, c.Record.Args = []json.RawMessage{forged}, []json.RawMessage{forged}
		c.Outcome.Value, c.Content = forged, &store.Content{Ref: "content:1", Value: forged}
		if err := n.CommitCall(ctx, c); err != nil {
			t.Fatal(err)
		}
		got, err := n.Call(ctx, c.Log.CallID)
		if err != nil || string(got.Log.Args[0]) != string(forged) || got.Outcome == nil ||
			string(got.Outcome.Value) != string(forged) {
			t.Errorf("%s: %v, %.80s, %+v", forged, err, got.Log.Args, got.Outcome)
		}
		if v, err := n.Content(ctx, "content:1"); err != nil || string(v) != string(forged) {
			t.Errorf("the content of %s: %v, %.80s", forged, err, v)
		}
	}
}

// A file that fits may fill the room to the last byte.
func TestFilesFillTheirRoom(t *testing.T) {
	t.Parallel()
	k, _ := keeper(t, func(_ *Options, p *agent.Policy) { p.Retention.SessionFileMiB = 10 })
	for _, size := range []int{9 << 20, 1 << 20} {
		if _, err := k.Upload(t.Context(), agent.File{Owner: "ann"},
			strings.NewReader(strings.Repeat("x", size))); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	var over *LimitError
	if _, err := k.Upload(t.Context(), agent.File{Owner: "ann"}, strings.NewReader("x")); !errors.As(err, &over) {
		t.Errorf("one byte more: %v", err)
	}
}

// A page of a history has the requested length, whatever its records refer to.
func TestHistoryOfLargeArguments(t *testing.T) {
	t.Parallel()
	n := storetest.Default(t, Inside(storetest.NewMemory(time.Now)))
	ctx := t.Context()
	if err := n.CreateSession(ctx, agent.Session{ID: "sess_1", Owner: "ann"}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		c := storetest.NewCommit("sess_1", fmt.Sprint("call_", i), time.Now())
		c.Record.Kwargs = json.RawMessage(`{"n":` + fmt.Sprint(i) + `,"text":"` + strings.Repeat("x", largeValue) +
			`"}`)
		if err := n.CommitCall(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		desc  bool
		pages string
	}{{false, "1 2|3 4|5 6"}, {true, "6 5|4 3|2 1"}} {
		var pages []string
		for q := (store.HistoryQuery{Desc: c.desc, Bytes: 3 * largeValue}); ; {
			p, err := n.History(ctx, "sess_1", q)
			if err != nil {
				t.Fatal(err)
			}
			seqs := []string{}
			for _, raw := range p.Records {
				var r agent.Record
				var kwargs map[string]any
				if err := json.Unmarshal(raw, &r); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(r.Kwargs, &kwargs); err != nil {
					t.Fatal(err)
				}
				if text, _ := kwargs["text"].(string); len(text) != largeValue {
					t.Errorf("record %d has %d bytes of text", r.Seq, len(text))
				}
				seqs = append(seqs, fmt.Sprint(r.Seq))
			}
			pages = append(pages, strings.Join(seqs, " "))
			if q.After = p.Next; p.Next == 0 {
				break
			}
		}
		if got := strings.Join(pages, "|"); got != c.pages {
			t.Errorf("descending %t: got %s, want %s", c.desc, got, c.pages)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "..", "a/b\\c", "\x00\r\n\"", "\u202egnp.exe", strings.Repeat("é", 300),
		"\xff\xfe"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, name, media string) {
		got := plainName(name)
		if len(got) > maxName || got == "." || got == ".." || strings.ContainsAny(got, "/\\\"\r\n\x00") ||
			plainName(got) != got {
			t.Errorf("%q became %q", name, got)
		}
		if kept, err := mediaType(media); err == nil && (strings.ContainsAny(kept, "\r\n\x00") ||
			!strings.Contains(kept, "/")) {
			t.Errorf("%q became %q", media, kept)
		}
	})
}
