package operator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An outage is a store with a hook before reads of the registry; a read fails with the hook's error. last is the
// previous read.
type outage struct {
	store.Store
	before func(last, read string) error // nil means that reads succeed
	last   string
}

type outageNamespace struct {
	store.Namespace
	all *outage
}

var errAway = errors.New("the store is away")

func (o *outage) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := o.Store.Namespace(name)
	return outageNamespace{n, o}, err
}

func (n outageNamespace) read(what string) error {
	last := n.all.last
	n.all.last = what
	if n.all.before == nil {
		return nil
	}
	return n.all.before(last, what)
}

func (n outageNamespace) Tool(ctx context.Context, role string) (agent.Tool, error) {
	if err := n.read("tool"); err != nil {
		return agent.Tool{}, err
	}
	return n.Namespace.Tool(ctx, role)
}

func (n outageNamespace) RankedTool(ctx context.Context, role string, now time.Time) (store.RankedTool, error) {
	if err := n.read("rank"); err != nil {
		return store.RankedTool{}, err
	}
	return n.Namespace.RankedTool(ctx, role, now)
}

func (n outageNamespace) Artifact(ctx context.Context, role, method string) (*agent.Artifact, error) {
	if err := n.read("artifact"); err != nil {
		return nil, err
	}
	return n.Namespace.Artifact(ctx, role, method)
}

func (n outageNamespace) ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error) {
	if err := n.read("artifacts"); err != nil {
		return nil, err
	}
	return n.Namespace.ListArtifacts(ctx, role)
}

// withOutages returns a rig with a program units.convert, and with an operator on a store that can fail.
func withOutages(t *testing.T) (*rig, *outage) {
	t.Helper()
	g := newRig(t, nil)
	s := &outage{Store: g.o.Store}
	g.o.Store = s
	var err error
	if g.op, err = operator.New(g.o); err != nil {
		t.Fatal(err)
	}
	if _, err := g.op.PutProgram(t.Context(), operator.ProgramPut{Role: "units", Method: "convert",
		Source: run("return 32, nil"), Revision: store.AnyRevision, Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	return g, s
}

// An operation fails while the store cannot be read, and changes nothing: an artifact or a tool that cannot be read is
// not taken for one that does not exist.
func TestOperationsInAnOutage(t *testing.T) {
	t.Parallel()
	every := func(read string) func(string, string) error {
		return func(_, now string) error {
			if now == read {
				return errAway
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		before  func(last, read string) error
		operate func(g *rig) error
	}{
		"archive a method": {every("artifact"), func(g *rig) error {
			return g.op.ArchiveArtifact(t.Context(), "units", "convert", "", "ann")
		}},
		"archive a method whose words cannot be noted": {func(last, now string) error {
			if last == "tool" && now == "artifact" {
				return errAway
			}
			return nil
		}, func(g *rig) error { return g.op.ArchiveArtifact(t.Context(), "units", "convert", "", "ann") }},
		"archive a tool": {func(last, now string) error {
			if last == "" && now == "tool" {
				return errAway
			}
			return nil
		}, func(g *rig) error { return g.op.ArchiveTool(t.Context(), "units", "", "ann") }},
		"put a program": {every("tool"), func(g *rig) error {
			_, err := g.op.PutProgram(t.Context(), operator.ProgramPut{Role: "units", Method: "convert",
				Source: run("return 33, nil"), Revision: store.AnyRevision, Actor: "ann"})
			return err
		}},
		"promote a program": {every("tool"), func(g *rig) error {
			_, err := g.op.Operate(t.Context(), "units", "convert", operator.Operation{Action: "promote",
				Actor: "ann"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, s := withOutages(t)
			was, err := g.memory.Artifact(t.Context(), "units", "convert")
			if err != nil {
				t.Fatal(err)
			}
			s.before, s.last = c.before, ""
			if err := c.operate(g); !errors.Is(err, errAway) {
				t.Errorf("it ends in %v, want %v", err, errAway)
			}
			now, err := g.memory.Artifact(t.Context(), "units", "convert")
			if err != nil || now.Revision != was.Revision {
				t.Errorf("the artifact is changed: %+v, %v", now, err)
			}
		})
	}
}

// A list of tools fails, rather than showing tools without a rank, while their ranks cannot be read.
func TestListsInAnOutage(t *testing.T) {
	t.Parallel()
	g, s := withOutages(t)
	if _, _, err := g.op.PutTool(t.Context(), operator.ToolPut{Role: "units",
		Contract: agent.Contract{Purpose: "converts"}, Revision: store.AnyRevision, Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.before = func(_, read string) error {
		if read == "rank" {
			return errAway
		}
		return nil
	}
	if tools, err := g.op.ListTools(t.Context(), "", 10); !errors.Is(err, errAway) {
		t.Errorf("listed: %+v, %v, want %v", tools, err, errAway)
	}
	if tools, _, err := g.op.FindTools(t.Context(), overview.Query{Sort: overview.ByName, Limit: 10}); !errors.Is(err, errAway) {
		t.Errorf("found: %+v, %v, want %v", tools, err, errAway)
	}
}

// The undo of a restore archives nothing that may have been made after it.
func TestUndoOfARestoreInAnOutage(t *testing.T) {
	t.Parallel()
	g, s := withOutages(t)
	if err := g.op.ArchiveArtifact(t.Context(), "units", "convert", "", "ann"); err != nil {
		t.Fatal(err)
	}
	var left store.Receipt
	if _, err := g.op.Restore(store.WithReceipt(t.Context(), &left), store.Target{Role: "units", Method: "convert"},
		"ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.op.PutTool(t.Context(), operator.ToolPut{Role: "units",
		Contract: agent.Contract{Purpose: "converts"}, Revision: store.AnyRevision, Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.before = func(last, read string) error {
		if last != "artifacts" && read == "tool" { // what is there is listed, but not when it was made
			return errAway
		}
		return nil
	}
	if _, err := g.op.Undo(t.Context(), operator.UndoRequest{AuditID: left.AuditID(),
		Actor: "ann"}); !errors.Is(err, errAway) {
		t.Errorf("the undo ends in %v, want %v", err, errAway)
	}
	if _, err := g.memory.Tool(t.Context(), "units"); err != nil {
		t.Errorf("the tool that was made after the restore is gone: %v", err)
	}
}
