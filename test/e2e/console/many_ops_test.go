//go:build ops

package console

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// How often the large directory holds what the small one holds. With CONSOLE_COPIES=1000 ten tools become 10,000 and
// ten calls 100,000, half of them in one session; without it there are a tenth of them.
var (
	toolCopies   = copies()
	callCopies   = 10 * toolCopies
	recordCopies = callCopies / 2
)

func copies() int {
	n, err := strconv.Atoi(os.Getenv("CONSOLE_COPIES"))
	if err != nil {
		return 100
	}
	return n
}

// uses is how often tool i of copy n was used: in another order than by name.
func uses(n, i int) int64 { return int64(1 + (n*7919+i*104729)%9973) }

// unsynced is a directory that is filled faster, since no test cuts the power.
type unsynced struct{ vfs.FS }

type unsyncedFile struct{ vfs.File }

func (unsyncedFile) Sync() error      { return nil }
func (unsynced) SyncDir(string) error { return nil }
func (unsynced) SyncAll() error       { return nil }
func (f unsynced) Open(name string, create bool) (vfs.File, error) {
	file, err := f.FS.Open(name, create)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{file}, nil
}

// multiply starts a second daemon on copies of what the first one has stored, which is stopped for it and started
// again. Copies have roles, sessions and calls of their own; the audit trail is linked anew.
func multiply(t *testing.T, m *rig.Model, few *rig.Daemon) *rig.Daemon {
	t.Helper()
	if code := few.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("the daemon ended in %d", code)
	}
	var base []store.Item
	if err := disk.Items(t.Context(), few.State(), disk.DefaultOptions(), "", func(x *store.Item) error {
		base = append(base, *x)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	few.Start()
	many := rig.Start(t, m)
	if code := many.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("the daemon ended in %d", code)
	}
	if err := os.RemoveAll(many.State()); err != nil {
		t.Fatal(err)
	}
	o := disk.DefaultOptions()
	fs, err := vfs.Dir(many.State())
	if err != nil {
		t.Fatal(err)
	}
	o.FS = unsynced{fs}
	c := newCopier(base)
	if err := disk.Fill(t.Context(), many.State(), o, c.each); err != nil {
		t.Fatal(err)
	}
	many.Start()
	return many
}

// A copier gives items many times, in the order that a store takes them in.
type copier struct {
	base     []store.Item
	roles    []string
	calls    []string // ids of the base's
	copies   []string // ids of the calls' copies: those of one copy together, in the order of time
	sessions map[string][]string
}

func newCopier(base []store.Item) *copier {
	c := &copier{base: base, sessions: map[string][]string{}}
	for i := range base {
		switch x := &base[i]; {
		case x.Tool != nil:
			c.roles = append(c.roles, x.Tool.Role)
		case x.Call != nil:
			var e agent.LogEntry
			_ = json.Unmarshal(x.Call, &e) // a line of the store's
			c.calls = append(c.calls, e.CallID)
		}
	}
	for range callCopies * len(c.calls) {
		c.copies = append(c.copies, ids.New("call"))
	}
	for range toolCopies {
		for i := range base {
			if s := base[i].Session; s != nil {
				c.sessions[s.ID] = append(c.sessions[s.ID], ids.NewSession(false))
			}
		}
	}
	return c
}

// renamed is what copy n calls things: role tool_3 of copy 42 is tool_3_042. Sessions keep their names: only they
// themselves are copied.
func (c *copier) renamed(n int) *strings.Replacer {
	var pairs []string
	for _, role := range c.roles {
		pairs = append(pairs, `"`+role+`"`, fmt.Sprintf(`"%s_%03d"`, role, n%toolCopies))
	}
	for i, id := range c.calls {
		pairs = append(pairs, id, c.copies[n*len(c.calls)+i])
	}
	for id, copies := range c.sessions {
		pairs = append(pairs, id, copies[0])
	}
	return strings.NewReplacer(pairs...)
}

// copyOf is a value with the names of a copy.
func copyOf[T any](names *strings.Replacer, v *T) (*T, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, json.Unmarshal([]byte(names.Replace(string(text))), out)
}

// is selects items.
func (c *copier) is(what func(*store.Item) bool) (out []*store.Item) {
	for i := range c.base {
		if what(&c.base[i]) {
			out = append(out, &c.base[i])
		}
	}
	return out
}

func (c *copier) each(give func(*store.Item) error) error {
	in := c.base[0].Namespace
	put := func(x store.Item, err error) error {
		if err != nil {
			return err
		}
		x.Namespace = in
		return give(&x)
	}
	for _, part := range []func(put func(store.Item, error) error) error{c.heads, c.tools, c.histories, c.log,
		c.learned, c.audit} {
		if err := part(put); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) heads(put func(store.Item, error) error) error {
	for _, x := range c.is(func(x *store.Item) bool { return x.Space != nil || x.Policy != nil || x.Program != nil }) {
		if err := put(*x, nil); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) tools(put func(store.Item, error) error) error {
	for n := range toolCopies {
		names := c.renamed(n)
		for i, x := range c.is(func(x *store.Item) bool { return x.Tool != nil }) {
			tool, err := copyOf(names, x.Tool)
			if err == nil {
				tool.UsageCount = uses(n, i)
			}
			if err := put(store.Item{Tool: tool}, err); err != nil {
				return err
			}
		}
		for _, x := range c.is(func(x *store.Item) bool { return x.Artifact != nil }) {
			a, err := copyOf(names, x.Artifact)
			if err := put(store.Item{Artifact: a}, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// histories gives the sessions. The first copy of each has the records of many copies.
func (c *copier) histories(put func(store.Item, error) error) error {
	for n := range toolCopies {
		for _, x := range c.is(func(x *store.Item) bool { return x.Session != nil }) {
			s := *x.Session
			old := s.ID
			s.ID, s.HistorySize = c.sessions[old][n], 0
			if err := put(store.Item{Session: &s}, nil); err != nil {
				return err
			}
			if n > 0 {
				continue
			}
			records := c.is(func(x *store.Item) bool { return x.Record != nil && x.Record.SessionID == old })
			for k := range recordCopies {
				names := c.renamed(k)
				for i, r := range records {
					record, err := copyOf(names, &r.Record.Record)
					if err == nil {
						*record = []byte(strings.Replace(string(*record), fmt.Sprintf(`"seq":%d,`, i+1),
							fmt.Sprintf(`"seq":%d,`, k*len(records)+i+1), 1))
					}
					if err := put(store.Item{Record: &store.ItemRecord{SessionID: s.ID, Record: *record}},
						err); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (c *copier) log(put func(store.Item, error) error) error {
	calls, values := c.is(func(x *store.Item) bool { return x.Call != nil }),
		c.is(func(x *store.Item) bool { return x.Value != nil })
	for n := range callCopies {
		names := c.renamed(n)
		for _, x := range calls {
			if err := put(store.Item{Call: json.RawMessage(names.Replace(string(x.Call)))}, nil); err != nil {
				return err
			}
		}
	}
	for n := callCopies - toolCopies; n < callCopies; n++ {
		names := c.renamed(n)
		for _, x := range values {
			v, err := copyOf(names, x.Value)
			if err := put(store.Item{Value: v}, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *copier) learned(put func(store.Item, error) error) error {
	var sum store.Spent
	for n := range toolCopies {
		names := c.renamed(n)
		for _, x := range c.is(func(x *store.Item) bool {
			return x.Pattern != nil || x.Evidence != nil ||
				x.Spent != nil
		}) {
			y, err := copyOf(names, x)
			if err == nil && y.Spent != nil {
				sum.Rows, sum.Forges = append(sum.Rows, y.Spent.Rows...), append(sum.Forges, y.Spent.Forges...)
				continue
			}
			if err := put(*y, err); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(sum.Rows, func(a, b agent.SpendRow) int { return strings.Compare(a.Role, b.Role) }) // of one day
	return put(store.Item{Spent: &sum}, nil)
}

func (c *copier) audit(put func(store.Item, error) error) error {
	head := chain.Start(c.base[0].Namespace, 0, "")
	for n := range toolCopies {
		names := c.renamed(n)
		for _, x := range c.is(func(x *store.Item) bool { return x.Audit != nil }) {
			var e agent.AuditEntry
			err := json.Unmarshal([]byte(names.Replace(string(x.Audit))), &e)
			if err == nil {
				e.ID = ids.New("aud")
				head, err = chain.Link(head, &e)
			}
			if err != nil {
				return err
			}
			line, err := chain.Line(&e)
			if err := put(store.Item{Audit: line}, err); err != nil {
				return err
			}
		}
	}
	return nil
}
