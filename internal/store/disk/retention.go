package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// retention is the part that drops what the policy no longer keeps: sessions, values, segments of the call log, and
// programs without references.
type retention struct {
	n *namespace

	forgotten time.Time // prompts of calls before this time were removed from the call log; guarded by flusher.mu
}

// Expire is part of store.Namespace.
func (p *retention) Expire(ctx context.Context, now time.Time) (int, error) {
	if err := p.n.health.ready(); err != nil {
		return 0, err
	}
	gone, err := p.expired(ctx, now)
	if err != nil {
		return 0, err
	}
	const together = 256 // erasing reads the logs once per chunk
	for part := range slices.Chunk(gone, together) {
		if err := p.n.sessions.delete(ctx, part, nil); err != nil {
			return 0, err
		}
	}
	if err := p.n.streams.expire(ctx, now); err != nil {
		return len(gone), err
	}
	waits, err := p.n.archive.endDeleted(now)
	if err != nil {
		return len(gone), err
	}
	p.n.flusher.mu.Lock()
	defer p.n.flusher.mu.Unlock()
	// An export needs the segments and the programs, so they are left to the next run.
	if p.n.flusher.exporting > 0 {
		return len(gone), nil
	}
	if err := p.dropSegments(now); err != nil {
		return len(gone), err
	}
	if err := p.prunePrograms(ctx, now); err != nil {
		return len(gone), err
	}
	p.setDue(now, waits)
	return len(gone), nil
}

// setDue sets when Expire may next have work. waits reports whether a deleted item can still be restored and will
// expire. The next checkpoint stores the time. The caller holds flusher.mu.
func (p *retention) setDue(now time.Time, waits bool) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if !p.n.there() {
		return
	}
	due := now.Add(store.ExpireEvery)
	if !waits && p.n.sessions.count == 0 && len(p.n.streams.known) == 0 && p.n.calls.entries.Empty() &&
		p.n.calls.values.Empty() {
		due = store.Never
	}
	p.n.life.Due = &due
	p.n.flusher.forced = true
}

// expired returns the sessions that the policy no longer keeps.
func (p *retention) expired(ctx context.Context, now time.Time) ([]string, error) {
	r := p.n.policies.current().Retention
	if r.SessionDays == 0 && r.MaxSessions == 0 && r.ValueHours == 0 {
		return nil, nil
	}
	all, err := p.n.sessions.allIDs()
	if err != nil {
		return nil, err
	}
	gone := []string{}
	if r.MaxSessions > 0 && len(all) > r.MaxSessions {
		gone, all = slices.Clip(all[:len(all)-r.MaxSessions]), all[len(all)-r.MaxSessions:]
	}
	old, err := p.idle(ctx, all, r.SessionDays*24, now)
	if err != nil {
		return nil, err
	}
	ephemeral, err := p.idle(ctx, slices.DeleteFunc(slices.Clone(all),
		func(id string) bool { return !ids.Ephemeral(id) }), r.ValueHours, now)
	gone = append(append(gone, old...), ephemeral...)
	slices.Sort(gone)
	return slices.Compact(gone), err
}

// idle returns those of the sessions that were not used for that many hours. It returns none if hours is 0.
func (p *retention) idle(ctx context.Context, sessions []string, hours int, now time.Time) (gone []string, err error) {
	cutoff := now.Add(-time.Duration(hours) * time.Hour)
	for _, id := range sessions {
		if err := ctx.Err(); err != nil || hours == 0 {
			return nil, err
		}
		x, err := p.n.sessions.get(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		meta := x.metadata()
		if meta.UpdatedAt.Before(cutoff) {
			gone = append(gone, id)
		} else if meta.CreatedAt.After(cutoff) {
			break // ids are in order of creation, so the others are younger
		}
	}
	return gone, nil
}

// dropSegments drops segments of the call log above its bound, and segments of values that are too old. The caller
// holds flusher.mu, as in prunePrograms.
func (p *retention) dropSegments(now time.Time) error {
	if err := p.n.calls.entries.Drop(func(_ jsonl.Segment, total int64) bool { return total > p.n.o.LogBytes },
		nil); err != nil {
		return err
	}
	hours := p.n.policies.current().Retention.ValueHours
	if hours == 0 {
		return nil
	}
	if err := p.forgetDebug(hours, now); err != nil {
		return err
	}
	keep := max(time.Duration(hours)*time.Hour, store.KeyLife)
	var dropped freed
	if err := p.n.calls.values.Drop(func(seg jsonl.Segment, _ int64) bool {
		return !seg.Newest.IsZero() &&
			now.Sub(seg.Newest) > keep
	}, dropped.line); err != nil {
		p.n.stored.anew.values = true
		return err
	}
	p.n.stored.drop(&dropped)
	return nil
}

// forgetDebug removes prompts older than the values' lifetime from the call log. It reads the segments written since
// its last run, or all of them after a start.
func (p *retention) forgetDebug(hours int, now time.Time) error {
	var e agent.LogEntry
	old := func(line []byte) bool {
		e = agent.LogEntry{}
		return slices.ContainsFunc([]string{`"user_prompt":`, `"context":`, `"notes":`},
			func(key string) bool {
				return bytes.Contains(line,
					[]byte(key))
			}) && json.Unmarshal(line, &e) == nil && store.ForgetDebug(&e, hours, now)
	}
	forget := func(line []byte) []byte {
		out, err := appendLog(nil, &e)
		if err != nil {
			return line
		}
		return out
	}
	if err := p.n.calls.entries.Erase(old, forget, p.forgotten); err != nil {
		return err
	}
	p.forgotten = now.Add(-time.Duration(hours) * time.Hour)
	return nil
}

// prunedDoc is programs/unreferenced.json: since when programs have had no references. A program is removed when the
// call log no longer reaches back to that time, because then no entry can refer to it.
type prunedDoc struct {
	head
	Since map[string]time.Time `json:"since"`
}

// prunedFile is the name of prunedDoc.
const prunedFile = "programs/unreferenced.json"

// prunePrograms removes program texts that neither artifacts nor the call log refer to.
func (p *retention) prunePrograms(ctx context.Context, now time.Time) error {
	names, err := p.n.files.list("programs")
	if err != nil || len(names) == 0 {
		return err
	}
	used, err := p.referenced(ctx)
	if err != nil {
		return err
	}
	var before prunedDoc
	if _, err := readOptional(p.n.files, prunedFile, &before, nil); err != nil {
		return err
	}
	reaches, err := p.logReaches()
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
		if known && !reaches.IsZero() && since.Before(reaches) {
			if err := p.n.files.drop("programs/" + name); err != nil {
				return err
			}
			continue
		}
		if !known {
			since = now
		}
		next.Since[sum] = since
	}
	if maps.Equal(next.Since, before.Since) {
		return nil
	}
	return p.n.files.writeDoc(prunedFile, next)
}

// logReaches returns a time before which no call in the call log ended, or the zero time if it is not known.
func (p *retention) logReaches() (time.Time, error) {
	line, err := p.n.calls.entries.Oldest()
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, jsonl.Member(line, "timestamp"))
	if err != nil {
		return time.Time{}, nil // an unreadable line proves nothing, so nothing is removed
	}
	return at.Add(-commitSlack), nil
}

var checksums = lazy.Regexp(`sha256:([0-9a-f]{64})`)

// referenced returns the program texts that artifacts in use or in the archive refer to, by the hexadecimal digits of
// their checksums.
func (p *retention) referenced(ctx context.Context) (map[string]bool, error) {
	used := map[string]bool{}
	note := func(name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := p.n.files.ReadFile(name)
		if vfs.NotExist(err) || vfs.WrongKind(err) {
			return nil
		}
		for _, m := range checksums().FindAllSubmatch(data, -1) {
			used[string(m[1])] = true
		}
		return err
	}
	if err := eachArtifactFile(p.n.files, note); err != nil {
		return nil, err
	}
	if err := p.n.files.eachDir(archiveDir, func(dir string) error {
		names, err := p.n.files.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := note(dir + "/" + name); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	for _, x := range p.n.artifacts.changed {
		if x.a == nil {
			continue
		}
		for _, g := range x.a.Held() {
			used[strings.TrimPrefix(g.CodeChecksum, "sha256:")] = true
		}
	}
	return used, nil
}
