package disk

import (
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// archiveFile is where an archived artifact, or tool when the method is empty, is kept.
func archiveFile(t store.Target, stamp string) string {
	if t.Method == "" {
		return archiveRegistryDir + "/" + slug(t.Role) + "." + stamp + ".json"
	}
	return archiveDir + "/" + slug(t.Role) + "/" + slug(t.Method) + "." + stamp + ".json"
}

// movedBy reports whether the file of the archive is what the operation with that audit id moved there. Files of earlier
// versions do not name the operation: theirs is the one whose time fits.
func movedBy(name, auditID string) bool {
	_, stamp, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), ".")
	if of := stampParts.FindStringSubmatch(stamp); of != nil && of[2] == "" {
		const longest = 10 * time.Second // of a commit, between the operation's id and the stamp
		at, err := time.Parse(stampFormat, of[1])
		took := at.Sub(agent.IDTime(auditID).Truncate(time.Millisecond))
		return err == nil && took >= 0 && took < longest
	}
	return strings.HasSuffix(stamp, "-"+slug(auditID))
}

// stampParts are the time of a stamp and the id of the operation, which files of earlier versions have not.
var stampParts = regexp.MustCompile(`^([0-9T]+\.[0-9]+Z)-[0-9]+(-.*)?$`)
