package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"io/fs"
	"mime"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A Draft is a file that is being written. One goroutine may use it at a time. The caller must call Discard, even after
// the store has kept the file.
type Draft struct {
	k    *Keeper
	ctx  context.Context // of the call or request; writing stops when it ends
	file agent.File
	to   store.Draft
	sum  hash.Hash
	held int64 // bytes reserved in Room

	closed bool
}

// Begin starts a file. It uses Owner, SessionID, CallID, Name and MediaType of f, and assigns the rest. Errors are
// *agent.InputError, *LimitError, *storage.FullError, or the store's.
func (k *Keeper) Begin(ctx context.Context, f agent.File) (*Draft, error) {
	media, err := mediaType(f.MediaType)
	if err != nil {
		return nil, err
	}
	now := k.o.Now().UTC()
	f.ID, f.Name, f.MediaType, f.CreatedAt, f.ExpiresAt = newID(), plainName(f.Name), media, now, k.expiry(now)
	d := &Draft{k: k, ctx: ctx, file: f, sum: sha256.New()}
	if d.to, err = k.store.NewDraft(); err != nil {
		return nil, k.limited(err)
	}
	// Refuse a file right away if the account is already over a bound.
	if err := d.reserve(0); err != nil {
		d.Discard()
		return nil, err
	}
	return d, nil
}

// ID returns the file's id, which is assigned by Begin.
func (d *Draft) ID() string { return d.file.ID }

// MediaType returns the file's media type without parameters.
func (d *Draft) MediaType() string {
	media, _, _ := strings.Cut(d.file.MediaType, ";")
	return media
}

// Write appends bytes. After an error, only Discard may be called. Errors are *LimitError, *storage.FullError, or the
// context's cause.
func (d *Draft) Write(p []byte) (int, error) {
	if err := context.Cause(d.ctx); err != nil {
		return 0, err
	}
	if d.closed {
		return 0, fs.ErrClosed
	}
	if d.file.Bytes+int64(len(p)) > d.k.o.MaxFile {
		return 0, &LimitError{LimitFile, d.k.o.MaxFile}
	}
	if err := d.reserve(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := d.to.Write(p)
	d.file.Bytes += int64(n)
	_, _ = d.sum.Write(p[:n]) // a hash never returns an error
	return n, d.k.limited(err)
}

// Close ends writing and makes the draft readable. It never fails.
func (d *Draft) Close() error {
	d.closed = true
	return nil
}

// Reader returns a reader of the written bytes, or nil before Close.
func (d *Draft) Reader() *io.SectionReader {
	if !d.closed {
		return nil
	}
	return io.NewSectionReader(d.to, 0, d.file.Bytes)
}

// End returns the file's description, with the digest of the bytes written so far.
func (d *Draft) End() agent.File {
	f := d.file
	f.SHA256 = hex.EncodeToString(d.sum.Sum(nil))
	return f
}

// New returns the draft in the form that the store accepts.
func (d *Draft) New() store.NewFile { return store.NewFile{File: d.End(), Draft: d.to} }

// Discard releases the reserved room, and removes the bytes unless the store has kept them. It may be called twice.
func (d *Draft) Discard() {
	d.to.Discard()
	d.k.room.give(d.account(), d.held)
	d.held = 0
}

// account returns the account that the draft reserves room from.
func (d *Draft) account() account {
	return account{agent.Owner{Namespace: d.k.o.Namespace, Name: d.file.Owner}, d.file.SessionID}
}

// reserve ensures that there is room for more bytes.
func (d *Draft) reserve(more int64) error {
	const step = 4 << 20
	want := d.file.Bytes + more
	if want <= d.held && d.held > 0 {
		return nil
	}
	need := max(want-d.held, 0)
	// Small files reserve exactly their size. Large ones reserve ahead, so that they check the bounds rarely.
	if want > step {
		if ahead := min(need+step, d.k.o.MaxFile-d.held); ahead > need && d.take(ahead) == nil {
			return nil
		}
	}
	return d.take(need)
}

// take reserves n bytes of room.
func (d *Draft) take(n int64) error {
	a := d.account()
	err := d.k.room.take(a, n, func() ([]bound, error) { return d.k.bounds(d.ctx, a) })
	if err == nil {
		d.held += n
	}
	return err
}

// bounds returns the bounds that apply to a file of the account, with the bytes already stored under each.
func (k *Keeper) bounds(ctx context.Context, a account) ([]bound, error) {
	own, all, err := k.store.FileBytes(ctx, a.owner.Name, a.session)
	if err != nil {
		return nil, err
	}
	var out []bound
	if limit := int64(k.o.Policy().Retention.SessionFileMiB) << 20; limit > 0 {
		out = append(out, bound{a, own, limit, func() error { return &LimitError{LimitSession, limit} }})
	}
	shares, err := k.o.Shares.Bounds(ctx, a.owner.Name, store.KindFiles)
	if len(shares) == 0 {
		shares = []storage.Bound{{Share: storage.ShareDaemon, Used: all, Limit: k.o.MaxAll}}
	}
	for _, b := range shares {
		out = append(out, bound{a.of(b.Share), b.Used, b.Limit,
			func() error { return k.o.Shares.Refused(b.Full(a.owner.Name, store.KindFiles)) }})
	}
	return out, err
}

// An account identifies the files that a bound counts together: those of a session, of an owner outside of sessions,
// all of an owner, all of a namespace (owner name empty), or all of the daemon (the zero value).
type account struct {
	owner   agent.Owner
	session string
}

// everything is the session of an account that covers all files of an owner or a namespace.
const everything = "*"

// of returns the account that a share applies to.
func (a account) of(share string) account {
	switch share {
	case storage.ShareOwner:
		return account{a.owner, everything}
	case storage.ShareNamespace:
		return account{agent.Owner{Namespace: a.owner.Namespace}, everything}
	}
	return account{}
}

// A Room counts the bytes reserved by files being written, and remembers which files were verified. Keepers that share
// MaxAll share a Room. The zero value is ready; it may be used concurrently.
type Room struct {
	mu    sync.Mutex
	taken map[account]int64 // guarded by mu

	sound soundFiles
}

// A bound limits the bytes stored for an account.
type bound struct {
	of           account
	stored, most int64
	full         func() error // returns the error for a full account
}

// take reserves n bytes in addition to those stored. It counts the stored bytes under the lock. A finished file is
// stored before its reservation is released, so it is always counted.
func (r *Room) take(a account, n int64, stored func() ([]bound, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	bounds, err := stored()
	if err != nil {
		return err
	}
	for _, b := range bounds {
		if b.stored+r.taken[b.of]+n > b.most {
			return b.full()
		}
	}
	r.add(a, n)
	return nil
}

// give releases n reserved bytes.
func (r *Room) give(a account, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(a, -n)
}

// add adds n to the account and to the larger accounts that include it. The caller holds mu.
func (r *Room) add(a account, n int64) {
	if r.taken == nil {
		r.taken = map[account]int64{}
	}
	for _, x := range [4]account{a, a.of(storage.ShareOwner), a.of(storage.ShareNamespace), a.of(storage.ShareDaemon)} {
		if r.taken[x] += n; r.taken[x] == 0 {
			delete(r.taken, x)
		}
	}
}

// maxName bounds a file name, in bytes.
const maxName = 255

// plainName makes a name safe to show and use: one line, without directories, control or invisible characters, at most
// maxName bytes.
func plainName(name string) string {
	name = strings.ToValidUTF8(name, "_")
	name = strings.Map(func(c rune) rune {
		switch {
		case c == '/' || c == '\\' || c == '"' || c == utf8.RuneError:
			return '_'
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, name)
	name = strings.TrimSpace(name)
	if name == "." || name == ".." {
		return "_"
	}
	for len(name) > maxName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

// mediaType validates a media type and returns its canonical form. It returns application/octet-stream for "".
func mediaType(given string) (string, error) {
	const maxType = 127
	if given == "" {
		return "application/octet-stream", nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err == nil && strings.Count(media, "/") == 1 && len(given) <= maxType {
		if formatted := mime.FormatMediaType(media, params); formatted != "" {
			return formatted, nil
		}
	}
	return "", &agent.InputError{Code: "file_invalid", Pointer: "header:Content-Type",
		Detail: "the media type is not valid", Hint: "Such as text/csv, or application/octet-stream."}
}
