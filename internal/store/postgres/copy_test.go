//go:build postgres

package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// content lists the items, one line each, without what two stores may keep differently: fractions of a microsecond in a
// session's time, fractions of a millisecond in a call's time, and the order of the kinds.
func content(t *testing.T, items func(context.Context, func(*store.Item) error) error) []string {
	t.Helper()
	var out []string
	if err := items(t.Context(), func(x *store.Item) error {
		y := *x
		what := ""
		switch {
		case y.Space != nil:
			y.Space = &store.NamespaceInfo{Name: y.Space.Name,
				CreatedAt: y.Space.CreatedAt.UTC().Truncate(time.Microsecond)}
		case y.Session != nil:
			s := *y.Session
			s.UpdatedAt = s.UpdatedAt.UTC().Truncate(time.Microsecond)
			y.Session = &s
		case y.Value != nil:
			out = append(out, line(y.Namespace, "value", y.Value))
			return nil
		case y.Archived != nil:
			a := *y.Archived
			a.At = a.At.Truncate(time.Millisecond)
			y.Archived = &a
		case y.File != nil:
			in, err := y.File.Open()
			if err != nil {
				return err
			}
			sum := sha256.New()
			if _, err := io.Copy(sum, in); err != nil {
				return err
			}
			what = fmt.Sprintf("%x %s", sum.Sum(nil), agent.Encoded(y.File.File))
			y.File = nil
			return errAppend(&out, in.Close(), line(y.Namespace, "file", what))
		}
		out = append(out, line(y.Namespace, what, &y))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func errAppend(out *[]string, err error, text string) error {
	*out = append(*out, text)
	return err
}

func line(name agent.Namespace, what string, v any) string {
	if x, ok := v.(*store.ItemValue); ok {
		y := *x
		y.At = y.At.UTC().Truncate(time.Millisecond)
		v = &y
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(name) + " " + what + " " + string(text)
}

// full fills a store with data of every kind, in two namespaces.
func full(t *testing.T, s store.Store, now time.Time) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []agent.Namespace{agent.DefaultNamespace, "acme"} {
		n, err := s.Namespace(name)
		ok(err)
		for i := range 3 {
			session := fmt.Sprintf("sess_%d", i)
			ok(n.CreateSession(t.Context(), agent.Session{ID: session, Role: "calculator", Owner: "ann", CreatedAt: now,
				UpdatedAt: now}, map[string]json.RawMessage{"a": json.RawMessage(`{"b":1.0}`)}))
			for j := range 3 {
				c := storetest.Forged(storetest.NewCommit(session, fmt.Sprintf("call_%d_%d", i, j), now),
					fmt.Sprintf("package tool // %d", j))
				c.Tools = []store.ToolChange{{Role: "calculator", At: now, Register: &agent.Contract{Purpose: "sums"},
					Used: 1}}
				c.Key, c.Reply = &store.Idempotent{Key: fmt.Sprintf("key %d %d", i, j), BodyHash: "h",
					CallID: c.Log.CallID}, json.RawMessage(`{"r":1}`)
				c.Content = &store.Content{Ref: fmt.Sprintf("content:%d%d", i, j), Value: json.RawMessage(`"x"`)}
				c.Pattern = &agent.PatternEvent{CallID: c.Log.CallID, SessionID: session, Role: "calculator",
					Timestamp: c.Log.Timestamp}
				if j == 2 {
					c.Log.UserCorrectionReferenceCallID = fmt.Sprintf("call_%d_1", i)
				}
				ok(n.CommitCall(t.Context(), c))
			}
			f, err := storetest.NewFile(n, agent.File{ID: fmt.Sprint("file_", i), Owner: "ann", CreatedAt: now},
				strings.Repeat("line\n", i*100_000))
			ok(err)
			ok(n.AddFile(t.Context(), f))
		}
		_, err = n.ChangeArtifact(t.Context(), store.AnyRevision,
			agent.ArtifactChange{Role: "finder", MethodName: "find", At: now,
				Generation: storetest.NewGeneration("gen-1", "package tool // find", now)}, nil)
		ok(err)
		ok(n.Archive(t.Context(), []store.Target{{Role: "finder", Method: "find"}},
			agent.AuditEntry{ID: "audit_1", Action: "archive"}))
		p, revision, err := n.Policy(t.Context())
		ok(err)
		p.DelegationDepth++
		ok(n.SetPolicy(t.Context(), p, revision, &agent.AuditEntry{ID: "audit_2", Action: "policy"}))
		_, err = n.PutConnection(t.Context(), agent.Connection{Name: "weather", Hosts: []string{"api.example.org"},
			Auth: agent.ConnectionAuth{Type: "bearer", Sealed: []byte("sealed")}}, 0, nil)
		ok(err)
		ok(n.Reserve(t.Context(), agent.Spend{ID: "spend_1", Day: agent.DayOf(now),
			Tokens: agent.Tokens{Requests: 1, Prompt: 10}}))
		settled := agent.Spend{ID: "spend_2", Day: agent.DayOf(now), Role: "calculator", Model: "m",
			Tokens: agent.Tokens{Requests: 1, Prompt: 10}}
		ok(n.Reserve(t.Context(), settled))
		ok(n.Settle(t.Context(), settled))
		ok(n.AppendAudit(t.Context(), agent.AuditEntry{ID: "audit_3", Action: "context.patch", SessionID: "sess_2",
			Reason: "secret"}))
		ok(n.DeleteSession(t.Context(), "sess_2", &agent.AuditEntry{ID: "audit_4", Action: "session.delete"}))
	}
}

// A copy holds what the original holds: from a directory to a database, on to another directory, and back into a
// database.
func TestCopiesAreTheSame(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	o := disk.DefaultOptions()
	o.Now = func() time.Time { return now }
	dir, second := t.TempDir(), filepath.Join(t.TempDir(), "second")
	d, err := disk.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	full(t, d, now)
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ofDir := func(dir string) func(context.Context, func(*store.Item) error) error {
		return func(ctx context.Context, give func(*store.Item) error) error {
			return disk.Items(ctx, dir, o, "", give)
		}
	}
	from := func(items func(context.Context, func(*store.Item) error) error) func(func(*store.Item) error) error {
		return func(give func(*store.Item) error) error { return items(t.Context(), give) }
	}
	want := content(t, ofDir(dir))
	first, third := empty(t), empty(t)
	if err := first.Fill(t.Context(), from(ofDir(dir))); err != nil {
		t.Fatal(err)
	}
	same(t, "the database", content(t, first.Items), want)
	if err := disk.Fill(t.Context(), second, o, from(first.Items)); err != nil {
		t.Fatal(err)
	}
	same(t, "the second directory", content(t, ofDir(second)), want)
	if err := third.Fill(t.Context(), from(ofDir(second))); err != nil {
		t.Fatal(err)
	}
	same(t, "the second database", content(t, third.Items), want)
	for _, s := range []*Store{first, third} {
		if r, err := s.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
			t.Errorf("verify: %v, %v", r.Problems, err)
		}
	}
	if r, err := disk.Verify(t.Context(), second, o); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify the second directory: %v, %v", r.Problems, err)
	}
	if err := first.Fill(t.Context(), from(ofDir(dir))); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a database that holds something: got %v", err)
	}
	if err := storetest.Default(t, third).AppendAudit(t.Context(), agent.AuditEntry{ID: "audit_5"}); err != nil {
		t.Error(err)
	}
}

// Nothing is copied into a database in use: its replicas would continue with what they read while it was empty, such as
// the policy.
func TestNoCopyUnderReplicas(t *testing.T) {
	t.Parallel()
	s := empty(t)
	copied := func() error {
		return s.Fill(t.Context(), func(give func(*store.Item) error) error {
			return give(&store.Item{Space: &store.NamespaceInfo{Name: agent.DefaultNamespace}})
		})
	}
	if err := s.Join(t.Context(), store.Replica{ID: "rep_1"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := copied(); !errors.Is(err, store.ErrInUse) {
		t.Errorf("beside a replica: got %v, want ErrInUse", err)
	}
	if err := s.Leave(t.Context(), "rep_1"); err != nil {
		t.Fatal(err)
	}
	if err := copied(); err != nil {
		t.Errorf("after it left: %v", err)
	}
}

func empty(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), DefaultOptions(pgtest.NewDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(want) < 60 {
		t.Fatalf("there are %d items only", len(want))
	}
	for _, x := range got {
		if !slices.Contains(want, x) {
			t.Errorf("%s has, and the original has not: %.600s", what, x)
		}
	}
	for _, x := range want {
		if !slices.Contains(got, x) {
			t.Errorf("%s has not: %.600s", what, x)
		}
	}
}

// A long export leaves the connections of the pool to others: the replica's heartbeat continues.
func TestExportsLeaveConnections(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t)+"&pool_max_conns=1", 1)
	s, me := stores[0], store.Replica{ID: "a"}
	created(t, spaces[0], "sess_1")
	if err := s.Join(t.Context(), me, time.Hour); err != nil {
		t.Fatal(err)
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		ended <- s.Items(t.Context(), func(*store.Item) error {
			once.Do(func() { close(begun) })
			<-goOn
			return nil
		})
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Renew(ctx, me, time.Hour); err != nil {
		t.Errorf("the heartbeat during an export: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
