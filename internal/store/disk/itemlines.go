package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

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
