package store

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Files stores files: streams of bytes of any length, and metadata about each. A file exists completely or not at all.
// A draft that was being written when the process ended is gone.
type Files interface {
	// NewDraft begins a file's bytes. ErrFull, ErrReadOnly.
	NewDraft() (Draft, error)
	// AddFile makes the draft a file. If it fails, the draft is discarded. ErrNotFound if the file names a session that
	// does not exist.
	AddFile(ctx context.Context, f NewFile) error
	// File returns a file's metadata. ErrNotFound if there is none or it has expired.
	File(ctx context.Context, id string) (agent.File, error)
	// OpenFile opens a file's bytes. They are not verified against the digest. The reader stays valid if the file is
	// deleted meanwhile. The caller closes it. ErrNotFound, ErrDamaged.
	OpenFile(ctx context.Context, id string) (FileReader, error)
	// ListFiles returns at most limit of the owner's files by id, newest first, starting after the id after; "" means
	// the start. Internal files are left out.
	ListFiles(ctx context.Context, owner, after string, limit int) ([]agent.File, error)
	// FileBytes returns two sums of file sizes. own covers the files of the session or, if session is "", the owner's
	// files that belong to no session; it leaves out internal files. all covers every file of every namespace.
	FileBytes(ctx context.Context, owner, session string) (own, all int64, err error)
	// DeleteFile erases the file and adds the audit entry, if it is not nil. ErrNotFound.
	DeleteFile(ctx context.Context, id string, audit *agent.AuditEntry) error
}

// NewFile is a file's metadata with the draft that has its bytes. The file is everything written to the draft.
type NewFile struct {
	agent.File
	Draft Draft
}

// A Draft holds the bytes of a file that is being written. Only one goroutine at a time may use it. Written bytes can
// be read until the draft becomes a file or is discarded.
type Draft interface {
	io.Writer
	io.ReaderAt
	// Discard removes the written bytes, unless the draft has become a file. It may be called more than once.
	Discard()
}

// FileReader reads a file's bytes at any offset. ReadAt may be called concurrently.
type FileReader interface {
	io.ReaderAt
	io.Closer
}

// Versioned is implemented by a FileReader that notices changes. Equal versions mean equal bytes; "" means unknown.
type Versioned interface{ Version() string }

// PageFiles returns the page of all for ListFiles. It changes all.
func PageFiles(all []agent.File, now time.Time, owner, after string, limit int) []agent.File {
	out := slices.DeleteFunc(all, func(f agent.File) bool {
		return f.Owner != owner || f.Internal || f.Expired(now) || after != "" && f.ID >= after
	})
	slices.SortFunc(out, func(a, b agent.File) int { return strings.Compare(b.ID, a.ID) })
	return out[:min(len(out), limit)]
}

// FileSums keeps running sums of file sizes, so no query has to add them up. The zero value is empty. It is not safe
// for concurrent use.
type FileSums struct {
	All  int64 // including internal files
	held map[holder]int64
}

// holder is what a file counts for: its session or, without one, its owner. Internal files have no holder.
type holder struct{ session, owner string }

func holderOf(session, owner string) holder {
	if session != "" {
		owner = ""
	}
	return holder{session, owner}
}

// Add counts a file that was added.
func (s *FileSums) Add(f *agent.File) { s.count(f, f.Bytes) }

// Remove subtracts a file that was removed.
func (s *FileSums) Remove(f *agent.File) { s.count(f, -f.Bytes) }

func (s *FileSums) count(f *agent.File, bytes int64) {
	s.All += bytes
	if f.Internal {
		return
	}
	if s.held == nil {
		s.held = map[holder]int64{}
	}
	k := holderOf(f.SessionID, f.Owner)
	if s.held[k] += bytes; s.held[k] == 0 {
		delete(s.held, k)
	}
}

// Of returns the size of a session's files or, if session is "", of the owner's files that belong to no session.
func (s *FileSums) Of(owner, session string) int64 { return s.held[holderOf(session, owner)] }
