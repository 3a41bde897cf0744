package store

import "github.com/recurgentd/recurgentd/internal/agent"

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
