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

// A Draft is a file that is being written. It belongs to one goroutine at a time. It must be discarded, also when it was kept.
type Draft struct {
	k    *Keeper
	ctx  context.Context // of the call or the request that it belongs to: writing ends with it
	file agent.File
	to   store.Draft
	sum  hash.Hash
	held int64 // bytes of room

	closed bool
}

// Begin begins a file. Owner, SessionID, CallID, Name and MediaType of f count.
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
	if err := d.reserve(0); err != nil {
		d.Discard()
		return nil, err
	}
	return d, nil
}

// ID is the file's id from the start.
func (d *Draft) ID() string { return d.file.ID }

// MediaType is the file's media type, without parameters.
func (d *Draft) MediaType() string {
	media, _, _ := strings.Cut(d.file.MediaType, ";")
	return media
}

// Write adds bytes. After an error the draft is good for nothing but Discard. *LimitError, *storage.FullError.
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
	_, _ = d.sum.Write(p[:n]) // a hash takes everything
	return n, d.k.limited(err)
}

// Close ends writing: from then on the draft can be read.
func (d *Draft) Close() error {
	d.closed = true
	return nil
}

// Reader reads what was written, nil before Close.
func (d *Draft) Reader() *io.SectionReader {
	if !d.closed {
		return nil
	}
	return io.NewSectionReader(d.to, 0, d.file.Bytes)
}

// End returns what is known of the file as it is.
func (d *Draft) End() agent.File {
	f := d.file
	f.SHA256 = hex.EncodeToString(d.sum.Sum(nil))
	return f
}

// New is the draft as the store takes it.
func (d *Draft) New() store.NewFile { return store.NewFile{File: d.End(), Draft: d.to} }

// Discard removes what was written, unless the store has kept it.
func (d *Draft) Discard() {
	d.to.Discard()
	d.k.room.give(d.account(), d.held)
	d.held = 0
}

func (d *Draft) account() account {
	return account{agent.Owner{Namespace: d.k.o.Namespace, Name: d.file.Owner}, d.file.SessionID}
}

// reserve makes sure that there is room for more bytes.
func (d *Draft) reserve(more int64) error {
	const step = 4 << 20
	want := d.file.Bytes + more
	if want <= d.held && d.held > 0 {
		return nil
	}
	need := max(want-d.held, 0)
	if want > step { // small files take what they have, large ones look seldom
		if ahead := min(need+step, d.k.o.MaxFile-d.held); ahead > need && d.take(ahead) == nil {
			return nil
		}
	}
	return d.take(need)
}

// take takes n bytes of room.
func (d *Draft) take(n int64) error {
	a := d.account()
	err := d.k.room.take(a, n, func() ([]bound, error) { return d.k.bounds(d.ctx, a) })
	if err == nil {
		d.held += n
	}
	return err
}

// bounds are those that a file of the account counts for.
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

// An account is what a bound counts together: an owner's, or a session's, files; all of an owner, of a namespace, or of the daemon where the rest
// is zero.
type account struct {
	owner   agent.Owner
	session string
}

// everything is the session of the account of all that an owner has.
const everything = "*"

// of is the account of a share.
func (a account) of(share string) account {
	switch share {
	case storage.ShareOwner:
		return account{a.owner, everything}
	case storage.ShareNamespace:
		return account{agent.Owner{Namespace: a.owner.Namespace}, everything}
	}
	return account{}
}

// A Room is what files that are being written have taken, and which files were found to be sound. The zero value is ready.
type Room struct {
	mu    sync.Mutex
	taken map[account]int64 // guarded by mu

	sound soundFiles
}

// A bound is what is stored of what it counts, and how much may be.
type bound struct {
	of           account
	stored, most int64
	full         func() error // why there is no room
}

// take takes n bytes beside those that are stored. What is stored is counted under the lock: a file becomes one before its room is given
// back, so that it counts all the time.
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

func (r *Room) give(a account, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(a, -n)
}

// add adds to the account and to those that have it. The caller holds mu.
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

// maxName bounds a file's name, in bytes.
const maxName = 255

// plainName makes a name that is text for people and safe wherever it is shown or used: one line, no directories, no control or invisible
// characters.
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

// mediaType checks a media type and brings it into one form.
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
		Detail: "the media type cannot be used", Hint: "Such as text/csv, or application/octet-stream."}
}
