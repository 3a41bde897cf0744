package disk

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/store"
)

// archiveFile is the path of an archived artifact, or of a tool when the method is empty.
func archiveFile(t store.Target, stamp string) string { return archivePlace(t) + "." + stamp + ".json" }

// archivePlace begins the paths of all that is archived of a target, and has no dot.
func archivePlace(t store.Target) string {
	if t.Method == "" {
		return archiveRegistryDir + "/" + slug(t.Role)
	}
	return archiveDir + "/" + slug(t.Role) + "/" + slug(t.Method)
}

// stampOf makes the end of the names of an operation's files: unique, and sorted by age.
func stampOf(at time.Time, number uint64, deleted bool, auditID string) string {
	mark := ""
	if deleted {
		mark = deletedMark
	}
	return fmt.Sprintf("%s-%010d%s-%s", at.UTC().Format(stampFormat), number, mark, slug(auditID))
}

const deletedMark = ".deleted"

// A stamp is the decoded name of an archive file. The zero value stands for an unknown format.
type stamp struct {
	at      time.Time
	deleted bool   // it is gone for good store.DeletedLife later
	by      string // the operation's id; "" in files of earlier versions
}

var stampParts = lazy.Regexp(`^([0-9T]+\.[0-9]+Z)-[0-9]+(\.deleted)?(?:-(.*))?$`)

func readStamp(name string) (s stamp) {
	_, text, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), ".")
	of := stampParts().FindStringSubmatch(text)
	if of == nil {
		return s
	}
	at, err := time.Parse(stampFormat, of[1])
	if err != nil {
		return s
	}
	return stamp{at, of[2] != "", of[3]}
}

// pastRestore reports whether the file holds what is gone for good by now.
func pastRestore(name string, now time.Time) bool {
	s := readStamp(name)
	return store.Ended(s.deleted, s.at, now)
}

// movedBy reports whether the operation with that audit id moved the file to the archive. The names of files of earlier
// versions do not have the operation's id: they are matched by time.
func movedBy(name, auditID string) bool {
	s := readStamp(name)
	if s.by != "" || s.at.IsZero() {
		return s.by == slug(auditID)
	}
	const longest = 10 * time.Second // of a commit, between the operation's id and the stamp
	took := s.at.Sub(ids.Time(auditID).Truncate(time.Millisecond))
	return took >= 0 && took < longest
}
