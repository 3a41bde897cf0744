package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// archiving is an artifact or a tool on its way to a file of the archive.
type archiving struct {
	name     string
	tool     *agent.Tool
	artifact *artifact
}

// Stale is part of store.Store.
func (s *Store) Stale(_ context.Context, before time.Time) ([]store.Target, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ranking.Stale(before), nil
}

// Archive is part of store.Store.
func (s *Store) Archive(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return s.takeAway(ctx, "archive", targets, audit)
}

// Remove is part of store.Store.
func (s *Store) Remove(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return s.takeAway(ctx, "remove", targets, audit)
}

func (s *Store) takeAway(ctx context.Context, kind string, targets []store.Target, audit agent.AuditEntry) error {
	s.exportMu.Lock()
	defer s.exportMu.Unlock()
	e := s.newEntry()
	e.Audit = &audit
	e.Move = &move{Kind: kind}
	return s.commit(ctx, &commit{entry: e, alone: true, check: func(*batch) error {
		e.Move.Stamp = fmt.Sprintf("%s-%010d", s.now().UTC().Format(stampFormat), e.lsn) // unique, and sorted by age
		e.Move.Targets = s.resolve(targets)
		return s.planAway(e)
	}})
}

// resolve names each artifact and each tool that the targets mean.
func (s *Store) resolve(targets []store.Target) []store.Target {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []store.Target{}
	for _, t := range targets {
		if t.Method != "" {
			out = append(out, store.Target{Role: t.Role, Method: t.Method})
			continue
		}
		for _, m := range s.ranking.Methods(t.Role) {
			if t.ToolOnly {
				break
			}
			out = append(out, store.Target{Role: t.Role, Method: m})
		}
		if s.ranking.Tool(t.Role) != nil {
			out = append(out, store.Target{Role: t.Role})
		}
	}
	return out
}

// planAway works out what is taken away. On recovery that leaves out what changed after the entry.
func (s *Store) planAway(e *entry) error {
	for _, t := range e.Move.Targets {
		name := archiveFile(t, e.Move.Stamp)
		if t.Method == "" {
			s.mu.RLock()
			tool := s.ranking.Tool(t.Role)
			s.mu.RUnlock()
			if tool != nil {
				e.away = append(e.away, archiving{name: name, tool: tool})
			}
			continue
		}
		x, err := s.artifact(artifactKey{t.Role, t.Method})
		if errors.Is(err, store.ErrNotFound) || err == nil && s.recovering && x.lsn > e.lsn {
			continue
		}
		if err != nil {
			return err
		}
		x, err = s.withText(x)
		if err != nil {
			return err
		}
		e.away = append(e.away, archiving{name: name, artifact: x})
	}
	return nil
}

// withText gives the artifact with the bytes that its file has, or would have.
func (s *Store) withText(x *artifact) (*artifact, error) {
	s.mu.RLock()
	changed := s.dirty[x.key] != nil
	s.mu.RUnlock()
	out := *x
	if !changed && x.text == nil {
		text, err := s.fs.ReadFile(x.key.file())
		if err != nil {
			return nil, err
		}
		out.text = text
		return &out, nil
	}
	text, err := x.encode()
	out.text = text
	return &out, err
}

// applyMove puts a planned move in place. The caller holds mu.
func (s *Store) applyMove(e *entry) {
	for _, x := range e.away {
		if e.Move.Kind == "archive" {
			s.archiving = append(s.archiving, x)
		}
		if x.tool != nil {
			s.dropTool(x.tool.Role)
			s.contractDirty = true
			s.changed(store.Change{Kind: "tool", Role: x.tool.Role})
			continue
		}
		s.applyArtifact(&artifact{key: x.artifact.key, lsn: e.lsn})
	}
	for _, x := range e.restored {
		s.unarchiving = append(s.unarchiving, x.name)
		if x.tool != nil {
			s.setTool(x.tool)
			s.contractDirty = true
			s.changed(store.Change{Kind: "tool", Role: x.tool.Role, Revision: x.tool.Revision})
			continue
		}
		if x.artifact != nil {
			s.applyArtifact(x.artifact)
		}
	}
}

// Restore is part of store.Store.
func (s *Store) Restore(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	if err := s.Ready(); err != nil {
		return err
	}
	s.exportMu.Lock()
	defer s.exportMu.Unlock()
	if err := s.Sync(); err != nil { // what was archived just now is in its files then
		return err
	}
	e := s.newEntry()
	e.Audit = &audit
	e.Move = &move{Kind: "restore"}
	return s.commit(ctx, &commit{entry: e, alone: true, check: func(*batch) error { return s.planRestore(e, targets) }})
}

func (s *Store) planRestore(e *entry, targets []store.Target) error {
	seen := map[string]bool{}
	for _, t := range targets {
		names, err := s.archivedNames(t)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return fmt.Errorf("%w in the archive: %s", store.ErrNotFound, targetName(t))
		}
		slices.Sort(names)
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			x, err := s.readArchived(name)
			if errors.Is(err, errCorrupt) {
				return fmt.Errorf("%w in the archive: %s was corrupt and set aside", store.ErrNotFound, name)
			}
			if err != nil {
				return err
			}
			target, exists := s.exists(x)
			if target.Role != t.Role || t.Method != "" && target.Method != t.Method {
				continue // another name with the same slug
			}
			if exists {
				return fmt.Errorf("%w: %s", store.ErrExists, targetName(target))
			}
			e.restored = append(e.restored, x)
			e.Move.Targets = append(e.Move.Targets, target)
			e.Move.Files = append(e.Move.Files, name)
		}
	}
	return nil
}

// exists names what an archived file holds, and says whether there is one in use.
func (s *Store) exists(x restored) (store.Target, bool) {
	if x.tool != nil {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return store.Target{Role: x.tool.Role}, s.ranking.Tool(x.tool.Role) != nil
	}
	_, err := s.artifact(x.artifact.key)
	return store.Target{Role: x.artifact.key.role, Method: x.artifact.key.method}, err == nil
}

// Expire is part of store.Store: sessions, values, log segments and programs that nothing refers to.
func (s *Store) Expire(ctx context.Context, now time.Time) (int, error) {
	if err := s.Ready(); err != nil {
		return 0, err
	}
	gone, err := s.expired(ctx, now)
	if err != nil {
		return 0, err
	}
	const together = 256 // erasing goes over the logs once for all of them
	for part := range slices.Chunk(gone, together) {
		if err := s.deleteSessions(ctx, part); err != nil {
			return 0, err
		}
	}
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if s.exporting > 0 {
		return len(gone), nil
	}
	if err := s.dropSegments(now); err != nil {
		return len(gone), err
	}
	return len(gone), s.prunePrograms(ctx, now)
}

// expired lists the sessions that the policy's retention no longer keeps.
func (s *Store) expired(ctx context.Context, now time.Time) ([]string, error) {
	s.mu.RLock()
	r := s.policy.Retention
	s.mu.RUnlock()
	if r.SessionDays == 0 && r.MaxSessions == 0 {
		return nil, nil
	}
	if err := s.loadIDs(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	ids := slices.Clone(s.ids)
	s.mu.RUnlock()
	cutoff := now.Add(-time.Duration(r.SessionDays) * 24 * time.Hour)
	gone := []string{}
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.MaxSessions > 0 && len(ids)-i > r.MaxSessions {
			gone = append(gone, id)
			continue
		}
		if r.SessionDays == 0 {
			break
		}
		x, err := s.session(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		x.mu.RLock()
		created, used := x.meta.CreatedAt, x.meta.UpdatedAt
		x.mu.RUnlock()
		if used.Before(cutoff) {
			gone = append(gone, id)
		} else if created.After(cutoff) {
			break // ids are in the order of their making: the rest is younger still
		}
	}
	return gone, nil
}

// dropSegments drops what the log's bound and the values' age leave no room for. The caller holds flushMu.
func (s *Store) dropSegments(now time.Time) error {
	if err := s.callLog.Drop(func(_ jsonl.Segment, total int64) bool { return total > s.o.LogBytes }); err != nil {
		return err
	}
	s.mu.RLock()
	hours := s.policy.Retention.ValueHours
	s.mu.RUnlock()
	if hours == 0 {
		return nil
	}
	keep := max(time.Duration(hours)*time.Hour, store.KeyLife)
	return s.values.Drop(func(seg jsonl.Segment, _ int64) bool { return !seg.Newest.IsZero() && now.Sub(seg.Newest) > keep })
}

// prunedDoc is programs/unreferenced.json: since when nothing stored has referred to a program. A program goes when
// the call log no longer reaches back to that time, as no entry can refer to it then.
type prunedDoc struct {
	head
	Since map[string]time.Time `json:"since"`
}

const prunedFile = "programs/unreferenced.json"

// prunePrograms removes the texts that neither artifacts nor the call log refer to. The caller holds flushMu.
func (s *Store) prunePrograms(ctx context.Context, now time.Time) error {
	names, err := s.fs.List("programs")
	if err != nil || len(names) == 0 {
		if vfs.NotExist(err) {
			return nil
		}
		return err
	}
	used, err := s.referenced(ctx)
	if err != nil {
		return err
	}
	var before prunedDoc
	if err := s.readOptional(prunedFile, &before, nil); err != nil {
		return err
	}
	reaches, err := s.callLogReaches()
	if err != nil {
		return err
	}
	next := prunedDoc{head: head{SchemaVersion: agent.SchemaVersion}, Since: map[string]time.Time{}}
	for _, name := range names {
		sum, ok := strings.CutSuffix(name, ".go")
		if !ok || used[sum] {
			continue
		}
		since, known := before.Since[sum]
		if !known {
			since = now
		}
		if known && !reaches.IsZero() && since.Before(reaches) {
			if err := s.fs.Remove("programs/" + name); err != nil {
				return err
			}
			continue
		}
		next.Since[sum] = since
	}
	if len(next.Since) == len(before.Since) {
		return nil
	}
	return s.writeDoc(prunedFile, next)
}

// callLogReaches returns a time such that no line of the call log is of a call that ended before. Zero: it is not known.
func (s *Store) callLogReaches() (time.Time, error) {
	line, err := s.callLog.Oldest()
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, jsonl.Member(line, "timestamp"))
	if err != nil {
		return time.Time{}, nil // an unreadable line says nothing: nothing is dropped for it
	}
	return at.Add(-commitSlack), nil
}
