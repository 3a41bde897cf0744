// Package files takes in the files of clients and of programs, and hands them out: it names and hashes them, bounds them, and decides who
// may see which. Bytes pass through as streams; none of its memory grows with a file.
//
// A file belongs to an owner, as a session does, and another's is not found. It is deleted when its time is over, or with its session. It
// knows nothing of HTTP and nothing of runners.
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
	Namespace agent.Namespace      // whose files they are
	Policy    func() *agent.Policy // the one in force; required
	Now       func() time.Time

	Room   *Room           // what all that share it are writing counts against MaxAll; nil: this one's alone
	Shares *storage.Shares // of MaxAll; nil: everybody has all

	MaxFile int64 // bytes of one file
	MaxAll  int64 // bytes of all files

	OnDamaged func(f agent.File) // is called when a file has other bytes than were stored; nil for nothing
}

// DefaultOptions returns the defaults of everything that is not required.
func DefaultOptions() Options {
	return Options{Now: time.Now, MaxFile: 256 << 20, MaxAll: 10 << 30}
}

// Bounds that a LimitError names. A full share is a *storage.FullError.
const (
	LimitFile    = "file"    // of one file
	LimitSession = "session" // of a session's files, or of an owner's that belong to none
)

// A LimitError says which bound a file is over.
type LimitError struct {
	Bound string // one of the Limit constants
	Limit int64  // bytes
}

func (e *LimitError) Error() string {
	if e.Bound == LimitFile {
		return fmt.Sprintf("a file may have %d bytes", e.Limit)
	}
	return fmt.Sprintf("the files of a session, or of an owner outside of sessions, may have %d bytes together",
		e.Limit)
}

// Keeper is safe for concurrent use.
type Keeper struct {
	o     Options
	store store.Namespace
	room  *Room
}

// New returns a Keeper.
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

// Upload keeps the bytes of a client's file. Owner, SessionID, Name and MediaType of f count, and Bytes is how many were announced, if any. What was read of a body that ends early, or
// that is over a bound, leaves nothing. Errors: *agent.InputError, *LimitError, *storage.FullError, store.ErrNotFound for the session, the body's own.
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

// File returns what is known of the owner's file, or of anybody's where owner is "". Parts of calls are none. store.ErrNotFound.
func (k *Keeper) File(ctx context.Context, owner, id string) (agent.File, error) {
	f, err := k.store.File(ctx, id)
	if err == nil && (owner != "" && f.Owner != owner || f.Internal) {
		return agent.File{}, store.ErrNotFound
	}
	return f, err
}

// OpenFile opens the owner's file, as File. store.ErrNotFound.
func (k *Keeper) OpenFile(ctx context.Context, owner, id string) (*Reader, error) {
	f, err := k.File(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return k.open(ctx, f)
}

// OpenAgain opens a file for a run on recorded effects, whoever owns it: what it reads reaches nobody. store.ErrNotFound.
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

// ListFiles pages through the owner's files, newest first, after the id after.
func (k *Keeper) ListFiles(ctx context.Context, owner, after string, limit int) ([]agent.File, error) {
	return k.store.ListFiles(ctx, owner, after, limit)
}

// opFileDelete names the operation in the audit trail.
const opFileDelete = "file.delete"

// DeleteFile erases the owner's file, as File, for the actor. The audit trail keeps that it was there, and neither its name nor a checksum of its bytes. store.ErrNotFound.
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

// expiry is when a file of now expires; zero for never.
func (k *Keeper) expiry(now time.Time) time.Time {
	hours := k.o.Policy().Retention.FileHours
	if hours == 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(hours) * time.Hour)
}

func newID() string { return ids.New("file") }

// limited turns a lack of space on the disk into a full share.
func (k *Keeper) limited(err error) error {
	if errors.Is(err, store.ErrFull) {
		return k.o.Shares.Refused(&storage.FullError{Of: store.KindFiles, Share: storage.ShareDisk})
	}
	return err
}
