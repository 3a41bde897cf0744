package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Items passes everything that the stopped store in the directory holds to give, or the content of one namespace if
// only is not "". It replays the journal first. give must not keep an item. Items returns store.ErrInUse if a daemon
// uses the directory.
func Items(ctx context.Context, dir string, o Options, only agent.Namespace, give func(*store.Item) error) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no data directory %s", dir)
	}
	s, err := Open(dir, o)
	if err != nil {
		return err
	}
	if err = s.loadAll(); err == nil {
		err = s.flusher.writeCheckpoint()
	}
	if err == nil && only != "" && !s.have(only) {
		err = fmt.Errorf("%w: namespace %s", store.ErrNotFound, only)
	}
	for _, n := range s.all() {
		if err == nil && (only == "" || only == n.name) {
			g := giver{ctx: ctx, n: n, give: give}
			err = g.all()
		}
	}
	return errors.Join(err, s.close())
}

// giver passes on the items of a namespace whose files are complete.
type giver struct {
	ctx  context.Context // of the walk
	n    *namespace
	give func(*store.Item) error
}

func (g *giver) item(x store.Item) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	x.Namespace = g.n.name
	return g.give(&x)
}

// all passes on all items in an order that Fill accepts: the namespace first, and each session before its records.
func (g *giver) all() error {
	n := g.n
	n.mu.RLock()
	info := n.store.info(n.name)
	n.mu.RUnlock()
	if err := g.item(store.Item{Space: &info}); err != nil {
		return err
	}
	for _, part := range []func() error{g.policy, g.registry, g.artifacts, g.archive, g.programs, g.sessions, g.calls,
		g.values, g.learned, g.files, g.audit} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (g *giver) policy() error {
	var doc policyDoc
	if _, err := readOptional(g.n.files, policyFile, &doc, nil); err != nil || doc.Policy == nil {
		return err
	}
	return g.item(store.Item{Policy: &store.ItemPolicy{Policy: compact(doc.Policy), Revision: doc.Revision}})
}

func (g *giver) registry() error {
	conns, err := g.n.ListConnections(g.ctx)
	if err != nil {
		return err
	}
	for i := range conns {
		if err := g.item(store.Item{Connection: &conns[i]}); err != nil {
			return err
		}
	}
	tools, err := g.n.ListTools(g.ctx, "", math.MaxInt)
	if err != nil {
		return err
	}
	for i := range tools {
		if err := g.item(store.Item{Tool: &tools[i]}); err != nil {
			return err
		}
	}
	return nil
}

func (g *giver) artifacts() error {
	roles := g.n.catalog.ranking.Roles()
	slices.Sort(roles)
	for _, role := range roles {
		list, err := g.n.ListArtifacts(g.ctx, role)
		if err != nil {
			return err
		}
		for _, a := range list {
			if err := g.item(store.Item{Artifact: a}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *giver) archive() error {
	return g.n.files.eachDir(archiveDir, func(dir string) error {
		names, err := g.n.files.list(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if isCorruptName(name) || pastRestore(name, g.n.now()) {
				continue
			}
			x, err := g.n.archive.read(path.Join(dir, name))
			if err != nil {
				return err
			}
			s := readStamp(name)
			out := store.ItemArchived{By: s.by, At: s.at, Deleted: s.deleted, Tool: x.tool}
			if x.artifact != nil {
				out.Artifact = x.artifact.a
			}
			if err := g.item(store.Item{Archived: &out}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *giver) programs() error {
	return g.n.files.eachProgram(func(name, _ string, intact bool) error {
		if !intact {
			return nil // the text is not what an artifact refers to
		}
		data, err := g.n.files.ReadFile(name)
		if err != nil {
			return err
		}
		text := string(data)
		return g.item(store.Item{Program: &text})
	})
}

func (g *giver) sessions() error {
	all, err := g.n.sessions.allIDs()
	if err != nil {
		return err
	}
	for _, id := range all {
		x, err := g.n.sessions.get(id)
		if err != nil {
			return err
		}
		shared, err := g.n.Context(g.ctx, id)
		if err != nil {
			return err
		}
		if err := g.item(store.Item{Session: &store.ItemSession{Session: x.metadata(), Context: shared}}); err != nil {
			return err
		}
		var failed error
		if err := g.n.sessions.eachRecord(g.ctx, x, func(line []byte) {
			if failed == nil {
				failed = g.item(store.Item{Record: &store.ItemRecord{SessionID: id, Record: bytes.Clone(line)}})
			}
		}); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
	}
	return nil
}

// learned passes on what was learned from calls: patterns, evidence, contents and spending.
func (g *giver) learned() error {
	n := g.n
	var items []store.Item
	n.mu.RLock()
	for _, events := range n.patterns.roles {
		for i := range events {
			items = append(items, store.Item{Pattern: &events[i]})
		}
	}
	for _, m := range n.evidence.all.All() {
		items = append(items, store.Item{Evidence: &m})
	}
	for _, e := range n.contents.kept.Entries {
		items = append(items, store.Item{Content: &e})
	}
	spent := n.spending.ledger.Spent(math.MinInt32, math.MaxInt32)
	n.mu.RUnlock()
	for _, x := range append(items, store.Item{Spent: &spent}) {
		if err := g.item(x); err != nil {
			return err
		}
	}
	return nil
}

func (g *giver) files() error {
	g.n.mu.RLock()
	known := g.n.streams.known
	g.n.mu.RUnlock()
	for id, f := range known {
		open := func() (io.ReadCloser, error) {
			file, err := g.n.files.Open(path.Join(filesDir, id), false)
			if err != nil {
				return nil, err
			}
			return struct {
				io.Reader
				io.Closer
			}{io.NewSectionReader(file, 0, f.Bytes), file}, nil
		}
		if err := g.item(store.Item{File: &store.ItemFile{File: f, Open: open}}); err != nil {
			return err
		}
	}
	return nil
}

func (g *giver) audit() error {
	// Lines are not trimmed, because the chain covers the exact lines of earlier versions and recognizes erased ones.
	data, err := g.n.files.ReadFile(auditFile)
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	for line := range bytes.Lines(data) {
		if err := g.item(store.Item{Audit: bytes.TrimSuffix(line, []byte("\n"))}); err != nil {
			return err
		}
	}
	return nil
}

// lines calls visit with the lines of files, except for lines that were erased completely. Missing files are skipped.
func (g *giver) lines(names []string, visit func(line []byte) error) error {
	for _, name := range names {
		f, err := g.n.files.Open(name, false)
		if vfs.NotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		size, err := f.Size()
		if err == nil {
			_, err = jsonl.Forward(g.ctx, f, 0, size, func(line []byte) (bool, error) {
				if line = bytes.TrimRight(line, " "); len(line) <= len("{}") {
					return false, nil
				}
				return false, visit(bytes.Clone(line))
			})
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// segments returns the names of a log's files, oldest first.
func (g *giver) segments(dir, current string) ([]string, error) {
	names, err := g.n.files.list(dir)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasSuffix(name, ".jsonl") ||
			isCorruptName(name)
	})
	names = prefixed(dir, names)
	if current != "" {
		names = append(names, current)
	}
	return names, nil
}

func (g *giver) calls() error {
	names, err := g.segments("calls", callLogFile)
	if err != nil {
		return err
	}
	return g.lines(names, func(line []byte) error { return g.item(store.Item{Call: line}) })
}

func (g *giver) values() error {
	names, err := g.segments("values", "")
	if err != nil {
		return err
	}
	return g.lines(names, func(line []byte) error {
		var v valueLine
		if json.Unmarshal(line, &v) != nil {
			return nil // readers skip a damaged line, too
		}
		x := store.ItemValue{CallID: v.CallID, SessionID: v.SessionID, Owner: v.Owner, Debug: v.Debug,
			At: time.UnixMilli(v.At).UTC(), Outcome: v.Outcome, Effects: v.Effects}
		if v.Key != nil {
			x.Key = &store.Idempotent{Key: v.Key.Key, BodyHash: v.Key.BodyHash, CallID: v.Key.CallID, Reply: v.Reply}
		}
		return g.item(store.Item{Value: &x})
	})
}
