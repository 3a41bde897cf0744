// Package files stores files of clients and programs and serves them. It names, hashes and bounds them, and decides who
// may read which. Bytes are streamed; its memory use does not grow with the size of a file.
//
// A file belongs to an owner, like a session. Other owners get store.ErrNotFound. A file is deleted when it expires or
// with its session. A file that the store has kept survives a crash; an abandoned draft leaves nothing. The package
// knows nothing of HTTP or runners.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Options configures a Keeper. Start from DefaultOptions.
type Options struct {
	Store     store.Store          // required
	Namespace agent.Namespace      // the namespace of the files
	Policy    func() *agent.Policy // the policy in force; required
	Now       func() time.Time

	// Room counts files being written against MaxAll. Keepers with a common MaxAll share it. nil means a Room of its
	// own.
	Room   *Room
	Shares *storage.Shares // how MaxAll is divided; nil means that everybody may use all of it

	MaxFile int64 // maximum bytes of one file
	MaxAll  int64 // maximum bytes of all files

	// OnDamaged, unless nil, is called when a file's bytes differ from those stored.
	OnDamaged func(f agent.File)
}

// DefaultOptions returns options with defaults for all fields that are not required.
func DefaultOptions() Options {
	return Options{Now: time.Now, MaxFile: 256 << 20, MaxAll: 10 << 30}
}

// Values of LimitError.Bound. A full share is reported as a *storage.FullError instead.
const (
	LimitFile    = "file"    // of one file
	LimitSession = "session" // of the files of one session, or of an owner outside of sessions
)

// A LimitError reports that a file exceeds a bound.
type LimitError struct {
	Bound string // one of the Limit constants
	Limit int64  // bytes
}

func (e *LimitError) Error() string {
	if e.Bound == LimitFile {
		return fmt.Sprintf("a file can have at most %d bytes", e.Limit)
	}
	return fmt.Sprintf("the files of a session, or of an owner outside of sessions, can have at most %d bytes together",
		e.Limit)
}

// A Keeper stores and serves the files of one namespace. It is safe for concurrent use.
type Keeper struct {
	o     Options
	store store.Namespace
	room  *Room
}

// New returns a Keeper. It holds no resources and need not be closed.
func New(o Options) (*Keeper, error) {
	if o.Store == nil || o.Policy == nil || o.Now == nil || o.MaxFile < 1 || o.MaxAll < 1 {
		return nil, errors.New("files: Store, Policy and Now are required, MaxFile and MaxAll must be at least 1")
	}
	if o.Room == nil {
		o.Room = &Room{}
	}
	o.Namespace = cmp.Or(o.Namespace, agent.DefaultNamespace)
	held, err := o.Store.Namespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	return &Keeper{o: o, store: held, room: o.Room}, nil
}

// Upload stores a client's file. It uses Owner, SessionID, Name and MediaType of f; Bytes is the announced size, or 0.
// If body ends early or exceeds a bound, nothing is stored. Errors are *agent.InputError, *LimitError,
// *storage.FullError, store.ErrNotFound for the session, or those of body.
func (k *Keeper) Upload(ctx context.Context, f agent.File, body io.Reader) (agent.File, error) {
	if f.SessionID != "" {
		s, err := k.store.Session(ctx, f.SessionID)
		if err != nil {
			return agent.File{}, err
		}
		if !s.OwnedBy(f.Owner) {
			return agent.File{}, store.ErrNotFound
		}
	}
	if f.Bytes > k.o.MaxFile {
		return agent.File{}, &LimitError{LimitFile, k.o.MaxFile}
	}
	// The draft counts the bytes itself.
	f.Bytes = 0
	d, err := k.Begin(ctx, f)
	if err != nil {
		return agent.File{}, err
	}
	defer d.Discard()
	if _, err := io.CopyBuffer(struct{ io.Writer }{d}, struct{ io.Reader }{body}, make([]byte, 64<<10)); err != nil {
		return agent.File{}, err
	}
	n := d.New()
	if err := k.store.AddFile(ctx, n); err != nil {
		return agent.File{}, k.limited(err)
	}
	return n.File, nil
}

// File returns the description of the owner's file, or of anybody's if owner is "". It returns store.ErrNotFound for
// other files and for internal parts of calls.
func (k *Keeper) File(ctx context.Context, owner, id string) (agent.File, error) {
	f, err := k.store.File(ctx, id)
	if err == nil && (owner != "" && f.Owner != owner || f.Internal) {
		return agent.File{}, store.ErrNotFound
	}
	return f, err
}

// OpenFile opens a file that File returns, with the same errors. The caller must close the Reader.
func (k *Keeper) OpenFile(ctx context.Context, owner, id string) (*Reader, error) {
	f, err := k.File(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return k.open(ctx, f)
}

// OpenAgain opens any owner's file to replay recorded effects, whose output reaches nobody. It returns
// store.ErrNotFound for missing files and internal parts. The caller must close the Reader.
func (k *Keeper) OpenAgain(ctx context.Context, id string) (*Reader, error) {
	f, err := k.store.File(ctx, id)
	if err != nil {
		return nil, err
	}
	if f.Internal {
		return nil, store.ErrNotFound
	}
	return k.open(ctx, f)
}

func (k *Keeper) open(ctx context.Context, f agent.File) (*Reader, error) {
	from, err := k.store.OpenFile(ctx, f.ID)
	if err != nil {
		if errors.Is(err, store.ErrDamaged) && k.o.OnDamaged != nil {
			k.o.OnDamaged(f)
		}
		return nil, err
	}
	r := NewReader(ctx, f, from)
	r.sound, r.key, r.report = &k.room.sound, string(k.o.Namespace)+"/"+f.ID, k.o.OnDamaged
	return r, nil
}

// ListFiles returns at most limit of the owner's files, newest first, that follow the file with the id after.
func (k *Keeper) ListFiles(ctx context.Context, owner, after string, limit int) ([]agent.File, error) {
	return k.store.ListFiles(ctx, owner, after, limit)
}

// opFileDelete is the action in the audit trail.
const opFileDelete = "file.delete"

// DeleteFile erases the owner's file for the actor. The audit entry records owner, media type, size and age, but
// neither the name nor a checksum. Errors are those of File.
func (k *Keeper) DeleteFile(ctx context.Context, owner, id, actor string) error {
	f, err := k.File(ctx, owner, id)
	if err != nil {
		return err
	}
	entry := trail.Entry(k.o.Now(), actor, opFileDelete, id)
	entry.SessionID, entry.Before = f.SessionID, agent.Encoded(struct {
		Owner     string    `json:"owner"`
		MediaType string    `json:"media_type"`
		Bytes     int64     `json:"bytes"`
		CreatedAt time.Time `json:"created_at"`
	}{f.Owner, f.MediaType, f.Bytes, f.CreatedAt})
	return k.store.DeleteFile(ctx, id, &entry)
}

// expiry returns when a file created now expires, or the zero time for never.
func (k *Keeper) expiry(now time.Time) time.Time {
	hours := k.o.Policy().Retention.FileHours
	if hours == 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(hours) * time.Hour)
}

func newID() string { return ids.New("file") }

// limited converts a full disk to a full share.
func (k *Keeper) limited(err error) error {
	if errors.Is(err, store.ErrFull) {
		return k.o.Shares.Refused(&storage.FullError{Of: store.KindFiles, Share: storage.ShareDisk})
	}
	return err
}
